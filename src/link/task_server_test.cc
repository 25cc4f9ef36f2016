#include "link/task_server.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "link/test_control_server.h"
#include "model/event.h"
#include "wire/frame.h"
#include "wire/hello.h"

namespace trainyard::link {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using wire::FrameKind;

std::string hello_of(const std::string& token, wire::Role role = wire::Role::Task) {
  return bytes_of(
      {.kind = FrameKind::Hello,
       .fields = wire::to_fields(wire::Hello{.role = role, .program = "test", .token = token})});
}

std::string hello_of_rank(const std::string& token, std::optional<int> rank,
                          std::optional<int> ranks) {
  return bytes_of({.kind = FrameKind::Hello,
                   .fields = wire::to_fields(wire::Hello{.role = wire::Role::Rank,
                                                         .program = "test",
                                                         .token = token,
                                                         .rank = rank,
                                                         .ranks = ranks})});
}

std::string progress(double fraction) {
  return bytes_of(
      {.kind = FrameKind::Report,
       .fields = wire::to_fields(wire::TaskReport{wire::Progress{.fraction = fraction}})});
}

std::string report(model::Said said, const std::string& message = {}) {
  return bytes_of({.kind = FrameKind::Report,
                   .fields = wire::to_fields(
                       wire::TaskReport{wire::StageWord{.said = said, .message = message}})});
}

wire::Frame refusal(std::string_view why) {
  return {.kind = FrameKind::Welcome,
          .fields = wire::to_fields(
              wire::Welcome{.ok = false, .server = "trainyard test", .error = std::string(why)})};
}

/// A yard that expects the first attempt at the task 7.
class TaskServerTest : public ControlServerTest {
 public:
  void SetUp() override {
    listen();
    tasks = std::make_unique<TaskServer>(
        *server, [this](model::AttemptKey key, const wire::TaskReport& what) {
          if (const auto* const progress = std::get_if<wire::Progress>(&what)) {
            said.push_back(fmt::format("{}.{} is at {}", key.task.value, key.attempt,
                                       progress->fraction.value()));
            return;
          }
          const auto& word = std::get<wire::StageWord>(what);
          said.push_back(fmt::format("{}.{} says {} {}", key.task.value, key.attempt,
                                     model::to_text(word.said), word.message));
        });
    token = tasks->expect(first);
  }

  std::unique_ptr<Caller> speaker() {
    auto caller = std::make_unique<Caller>(tasks->path());
    EXPECT_TRUE(caller->say(hello_of(token)));
    run_until_heard(*caller, 1);
    EXPECT_THAT(caller->received, ElementsAre(welcome()));
    caller->received.clear();
    return caller;
  }

  const model::AttemptKey first{.task = {7}, .attempt = 1};
  std::unique_ptr<TaskServer> tasks;
  std::string token;
  std::vector<std::string> said;
};

TEST_F(TaskServerTest, HearsAProcessAndTellsItToTrain) {
  const auto process = speaker();
  EXPECT_TRUE(process->say(report(model::Said::Loading) + report(model::Said::Loaded)));
  run_until([&] { return said.size() == 2; });
  EXPECT_THAT(said, ElementsAre("7.1 says loading ", "7.1 says loaded "));
  tasks->order(first, std::vector<wire::TaskOrder>{wire::TrainOrder{.device = "cpu"}});
  run_until_heard(*process, 1);
  EXPECT_THAT(process->received,
              ElementsAre(wire::Frame{.kind = FrameKind::Order,
                                      .fields = R"({"device":"cpu","do":"train"})"}));
  EXPECT_THAT(troubles, IsEmpty());
}

TEST_F(TaskServerTest, GivesEachAttemptATokenOfItsOwn) {
  const std::string other = tasks->expect({.task = {7}, .attempt = 2});
  EXPECT_THAT(token, SizeIs(32));
  EXPECT_EQ(token.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_NE(token, other);
}

/// The text of an order to train.
std::string order_text(bool again) {
  return again ? R"({"again":true,"device":"cpu","do":"train"})"
               : R"({"device":"cpu","do":"train"})";
}

TEST_F(TaskServerTest, TellsTheLastOrderToWhoConnectsAgain) {
  auto process = speaker();
  EXPECT_TRUE(process->say(report(model::Said::Loading) + report(model::Said::Loaded)));
  run_until([&] { return said.size() == 2; });
  process.reset();
  run_until([&] { return server->connections() == 0; });
  // No process receives it.
  tasks->order(first, std::vector<wire::TaskOrder>{wire::TrainOrder{.device = "cpu"}});
  for (int times = 0; times < 2; ++times) {
    Caller next(tasks->path());
    EXPECT_TRUE(next.say(hello_of(token)));
    run_until_heard(next, 2);
    EXPECT_THAT(next.received, ElementsAre(welcome(), wire::Frame{.kind = FrameKind::Order,
                                                                  .fields = order_text(true)}));
  }
}

TEST_F(TaskServerTest, HearsNothingTwiceThatIsSaidOnANewConnection) {
  auto process = speaker();
  const std::string words = report(model::Said::Loading) + report(model::Said::Loaded);
  EXPECT_TRUE(process->say(words));
  run_until([&] { return said.size() == 2; });
  tasks->order(first, std::vector<wire::TaskOrder>{wire::TrainOrder{.device = "cpu"}});
  process.reset();
  Caller again(tasks->path());
  EXPECT_TRUE(again.say(hello_of(token) + words + report(model::Said::Trained)));
  run_until([&] { return said.size() == 3; });
  EXPECT_EQ(said.back(), "7.1 says trained ");
}

TEST_F(TaskServerTest, TellsNoOrderAgainToOneThatRanOutOfMemorySince) {
  auto process = speaker();
  EXPECT_TRUE(process->say(report(model::Said::Loading) + report(model::Said::Loaded)));
  run_until([&] { return said.size() == 2; });
  tasks->order(first, std::vector<wire::TaskOrder>{wire::TrainOrder{.device = "cpu"}});
  EXPECT_TRUE(process->say(report(model::Said::OutOfMemory)));
  run_until([&] { return said.size() == 3; });
  process.reset();
  const auto next = speaker();
  tasks->order(first, std::vector<wire::TaskOrder>{wire::TrainOrder{.device = "cpu"}});
  run_until_heard(*next, 1);
  EXPECT_THAT(next->received,
              ElementsAre(wire::Frame{.kind = FrameKind::Order, .fields = order_text(false)}));
}

TEST_F(TaskServerTest, TellsNoOrderToAHelper) {
  const auto process = speaker();
  EXPECT_TRUE(process->say(report(model::Said::Loading) + report(model::Said::Loaded)));
  run_until([&] { return said.size() == 2; });
  tasks->order(first, std::vector<wire::TaskOrder>{wire::TrainOrder{.device = "cpu"}});
  Caller helper(tasks->path());
  EXPECT_TRUE(helper.say(hello_of(token, wire::Role::Helper) + progress(0.5)));
  run_until([&] { return said.size() == 3; });
  tasks->forget(first);
  run_until_cut_off(helper);
  EXPECT_THAT(helper.received, ElementsAre(welcome(), failure("the attempt is over")));
}

TEST_F(TaskServerTest, TurnsAWrongTokenAway) {
  const auto good = speaker();
  for (const std::string& wrong : {std::string(), std::string(32, '0'), token.substr(1)}) {
    Caller stranger(tasks->path());
    EXPECT_TRUE(stranger.say(hello_of(wrong) + report(model::Said::Trained)));
    run_until_cut_off(stranger);
    EXPECT_THAT(stranger.received,
                ElementsAre(refusal("its token is not that of a running attempt")));
  }
  EXPECT_THAT(said, IsEmpty());
  EXPECT_TRUE(good->say(report(model::Said::Loading)));
  run_until([&] { return !said.empty(); });
  EXPECT_THAT(said, ElementsAre("7.1 says loading "));
}

TEST_F(TaskServerTest, TurnsTheTokenOfAnAttemptAwayThatIsOver) {
  const auto process = speaker();
  tasks->forget(first);
  run_until_cut_off(*process);
  EXPECT_THAT(process->received, ElementsAre(failure("the attempt is over")));
  Caller late(tasks->path());
  EXPECT_TRUE(late.say(hello_of(token)));
  run_until_cut_off(late);
  EXPECT_THAT(late.received, ElementsAre(refusal("its token is not that of a running attempt")));
  tasks->order(first, std::vector<wire::TaskOrder>{wire::TrainOrder{.device = "cpu"}});
}

TEST_F(TaskServerTest, HearsWhatAProcessSaidBeforeItsEndThoughThatIsKnownFirst) {
  {
    // It connects, says all it has to say, and is gone before anybody has looked.
    Caller process(tasks->path());
    EXPECT_TRUE(process.say(hello_of(token) + report(model::Said::Loading) +
                            report(model::Said::OutOfMemory)));
  }
  EXPECT_THAT(said, IsEmpty());
  tasks->forget(first);
  EXPECT_THAT(said, ElementsAre("7.1 says loading ", "7.1 says out_of_memory "));
}

TEST_F(TaskServerTest, LetsOneSpeakForAnAttemptAtATime) {
  auto process = speaker();
  Caller second(tasks->path());
  EXPECT_TRUE(second.say(hello_of(token) + report(model::Said::Trained)));
  run_until_cut_off(second);
  EXPECT_THAT(second.received, ElementsAre(refusal("somebody speaks for this attempt already")));
  EXPECT_THAT(said, IsEmpty());
  process.reset();
  run_until([&] { return server->connections() == 0; });
  const auto again = speaker();
  EXPECT_TRUE(again->say(report(model::Said::Loading)));
  run_until([&] { return !said.empty(); });
  EXPECT_THAT(said, ElementsAre("7.1 says loading "));
}

TEST_F(TaskServerTest, LetsTheNextSpeakThoughNobodyHasSeenTheEndOfTheLast) {
  auto process = speaker();
  const std::string progress =
      bytes_of({.kind = FrameKind::Report,
                .fields = wire::to_fields(wire::Progress{
                    .fraction = 0.5, .values = "{\"x\":\"" + std::string(2'000, 'x') + "\"}"})});
  // More than is read of it in a turn, while the next one's hello is there at once.
  constexpr int kReports = 40;
  for (int i = 0; i < kReports; ++i) ASSERT_TRUE(process->say(progress));
  process.reset();
  Caller next(tasks->path());
  EXPECT_TRUE(next.say(hello_of(token) + report(model::Said::Loading)));
  run_until_heard(next, 1);
  EXPECT_THAT(next.received, ElementsAre(welcome()));
  run_until([&] { return said.size() == kReports + 1; });
  EXPECT_EQ(said.back(), "7.1 says loading ") << "what the last has said comes before";
  EXPECT_EQ(std::ranges::count(said, "7.1 is at 0.5"), kReports);
  EXPECT_THAT(troubles, IsEmpty());
}

TEST_F(TaskServerTest, TakesNoNumberOfARankFromATaskThatHasNone) {
  const std::string hello = bytes_of(
      {.kind = FrameKind::Hello,
       .fields = wire::to_fields(wire::Hello{
           .role = wire::Role::Task, .program = "test", .token = token, .rank = 5, .ranks = 9})});
  Caller numbered(tasks->path());
  EXPECT_TRUE(numbered.say(hello + report(model::Said::Loading)));
  run_until([&] { return !said.empty(); });
  EXPECT_THAT(said, ElementsAre("7.1 says loading "));
  Caller second(tasks->path());
  EXPECT_TRUE(second.say(hello));
  run_until_cut_off(second);
  EXPECT_THAT(second.received, ElementsAre(refusal("somebody speaks for this attempt already")));
}

TEST_F(TaskServerTest, CutsOffWhoSpeaksGarbageAndNobodyElse) {
  const std::string other_token = tasks->expect({.task = {8}});
  const auto process = speaker();
  Caller other(tasks->path());
  EXPECT_TRUE(other.say(hello_of(other_token)));
  run_until_heard(other, 1);
  EXPECT_TRUE(process->say(bytes_of({.kind = FrameKind::Report, .fields = "[1]"})));
  run_until_cut_off(*process);
  EXPECT_THAT(process->received,
              ElementsAre(failure("report: fields must be an object, not array")));
  EXPECT_TRUE(other.say(report(model::Said::Failed, "ValueError")));
  run_until([&] { return !said.empty(); });
  EXPECT_THAT(said, ElementsAre("8.1 says failed ValueError"));
  EXPECT_THAT(troubles,
              ElementsAre(me + " was cut off: report: fields must be an object, not array"));
}

TEST_F(TaskServerTest, LetsHelpersSayHowFarItIsAndNothingElse) {
  const auto process = speaker();
  Caller helper(tasks->path());
  EXPECT_TRUE(helper.say(hello_of(token, wire::Role::Helper) + progress(0.5)));
  run_until([&] { return !said.empty(); });
  EXPECT_THAT(said, ElementsAre("7.1 is at 0.5"));
  EXPECT_TRUE(helper.say(report(model::Said::Trained)));
  run_until_cut_off(helper);
  EXPECT_THAT(helper.received,
              ElementsAre(welcome(), failure("a helper says nothing of the life of its task")));
  Caller late(tasks->path());
  EXPECT_TRUE(late.say(hello_of(token, wire::Role::Helper)));
  run_until_heard(late, 1);
  tasks->forget(first);
  run_until_cut_off(late);
  EXPECT_THAT(late.received, ElementsAre(welcome(), failure("the attempt is over")));
  EXPECT_THAT(said, SizeIs(1));
}

TEST_F(TaskServerTest, HearsOfATaskOfOnePhaseByItsHelpersAlone) {
  for (const int ranks : {0, 2}) {
    const model::AttemptKey plain{.task = {8}, .attempt = static_cast<std::uint32_t>(ranks + 1)};
    const std::string of_it = tasks->expect(plain, {.ranks = ranks, .tells_its_life = false});
    for (const std::string& hello : {hello_of(of_it), hello_of_rank(of_it, 0, 2)}) {
      Caller speaks(tasks->path());
      EXPECT_TRUE(speaks.say(hello + report(model::Said::Loading)));
      run_until_cut_off(speaks);
      EXPECT_THAT(
          speaks.received,
          ElementsAre(refusal("the task has one phase, and waits for no device: 'two-phase: true' "
                              "in the job file has it wait; who only says how far it is comes as a "
                              "helper")));
    }
    Caller helper(tasks->path());
    EXPECT_TRUE(helper.say(hello_of(of_it, wire::Role::Helper) + progress(0.5)));
    run_until([&] { return !said.empty(); });
    EXPECT_THAT(said, ElementsAre(fmt::format("8.{} is at 0.5", plain.attempt)));
    said.clear();
    tasks->forget(plain);
    run_until_cut_off(helper);
    EXPECT_THAT(helper.received, ElementsAre(welcome(), failure("the attempt is over")));
  }
}

TEST_F(TaskServerTest, LetsSixteenHelpAtATime) {
  std::vector<std::unique_ptr<Caller>> helpers;
  for (int i = 0; i < TaskServer::kHelpersMax; ++i) {
    helpers.push_back(std::make_unique<Caller>(tasks->path()));
    EXPECT_TRUE(helpers.back()->say(hello_of(token, wire::Role::Helper)));
    run_until_heard(*helpers.back(), 1);
  }
  Caller one_more(tasks->path());
  EXPECT_TRUE(one_more.say(hello_of(token, wire::Role::Helper)));
  run_until_cut_off(one_more);
  EXPECT_THAT(one_more.received, ElementsAre(refusal("16 help this attempt already")));
}

TEST_F(TaskServerTest, HearsNoRequestOfATask) {
  const auto process = speaker();
  EXPECT_TRUE(process->say(request(1)));
  run_until_cut_off(*process);
  EXPECT_THAT(process->received, ElementsAre(failure("a frame of kind 3 is not expected here")));
}

TEST_F(TaskServerTest, HearsAThousandReportsOfAnAttemptAndNotMore) {
  auto process = speaker();
  for (int i = 0; i < TaskServer::kReportsMax; ++i) {
    ASSERT_TRUE(process->say(report(model::Said::Loading)));
    if (i % 100 == 99) run_until([&] { return said.size() == static_cast<std::size_t>(i) + 1; });
  }
  EXPECT_TRUE(process->say(report(model::Said::Loading)));
  run_until_cut_off(*process);
  EXPECT_THAT(process->received, ElementsAre(failure("more than 1000 reports of one process")));
  // The count is that of the attempt: a new connection does not help.
  const auto again = speaker();
  EXPECT_TRUE(again->say(report(model::Said::Loading)));
  run_until_cut_off(*again);
  EXPECT_THAT(said, SizeIs(TaskServer::kReportsMax));
}

/// And one of two ranks, the first attempt at the task 9.
class TaskServerRanks : public TaskServerTest {
 public:
  void SetUp() override {
    TaskServerTest::SetUp();
    token = tasks->expect(nine, {.ranks = 2});
  }

  std::unique_ptr<Caller> rank(int number) {
    auto caller = std::make_unique<Caller>(tasks->path());
    EXPECT_TRUE(caller->say(hello_of_rank(token, number, 2)));
    run_until_heard(*caller, 1);
    EXPECT_THAT(caller->received, ElementsAre(welcome()));
    caller->received.clear();
    return caller;
  }

  const model::AttemptKey nine{.task = {9}, .attempt = 1};
};

TEST_F(TaskServerRanks, SpeakAsOneTaskAndAreToldToTrainOnADeviceEach) {
  const auto zero = rank(0);
  const auto one = rank(1);
  EXPECT_TRUE(zero->say(report(model::Said::Loading) + report(model::Said::Loaded)));
  run_until([&] { return said.size() == 1; });
  EXPECT_TRUE(one->say(report(model::Said::Loading) + report(model::Said::Loaded)));
  run_until([&] { return said.size() == 2; });
  tasks->order(nine, std::vector<wire::TaskOrder>{wire::TrainOrder{.device = "cuda:3"},
                                                  wire::TrainOrder{.device = "cuda:5"}});
  run_until_heard(*zero, 1);
  run_until_heard(*one, 1);
  EXPECT_EQ(zero->received.front().fields, R"({"device":"cuda:3","do":"train"})");
  EXPECT_EQ(one->received.front().fields, R"({"device":"cuda:5","do":"train"})");
  EXPECT_TRUE(one->say(report(model::Said::Trained)));
  EXPECT_TRUE(zero->say(report(model::Said::Trained)));
  run_until([&] { return said.size() == 3; });
  EXPECT_THAT(said, ElementsAre("9.1 says loading ", "9.1 says loaded ", "9.1 says trained "));
  EXPECT_THAT(troubles, IsEmpty());
}

TEST_F(TaskServerRanks, FailWithTheFirstWhichIsNamed) {
  const auto zero = rank(0);
  const auto one = rank(1);
  EXPECT_TRUE(one->say(report(model::Said::Loading) +
                       report(model::Said::OutOfMemory, "CUDA out of memory")));
  run_until([&] { return said.size() == 2; });
  EXPECT_TRUE(zero->say(report(model::Said::Failed, "the connection was closed")));
  tasks->forget(nine);
  EXPECT_THAT(
      said, ElementsAre("9.1 says loading ", "9.1 says out_of_memory rank 1: CUDA out of memory"));
}

TEST_F(TaskServerRanks, AreNamedWhenTheySpeakOutOfTurn) {
  const auto one = rank(1);
  EXPECT_TRUE(one->say(report(model::Said::Loading) + report(model::Said::Trained)));
  run_until([&] { return said.size() == 2; });
  EXPECT_THAT(said, ElementsAre("9.1 says loading ",
                                "9.1 says nonsense rank 1 spoke out of turn, and said trained"));
}

TEST_F(TaskServerRanks, SayHowFarTheTaskIsByTheFirst) {
  const auto zero = rank(0);
  const auto one = rank(1);
  EXPECT_TRUE(one->say(progress(0.9) + report(model::Said::Loading)));
  run_until([&] { return said.size() == 1; });
  EXPECT_TRUE(zero->say(progress(0.5)));
  run_until([&] { return said.size() == 2; });
  EXPECT_THAT(said, ElementsAre("9.1 says loading ", "9.1 is at 0.5"));
}

TEST_F(TaskServerRanks, AreRefusedWithAWrongNumberOrTwiceOrWithoutOne) {
  const auto one = rank(1);
  struct Case {
    std::string hello;
    std::string_view why;
  };
  const std::string of_one_process = tasks->expect({.task = {10}});
  for (const Case& each : std::vector<Case>{
           {hello_of_rank(token, 1, 2), "two processes are rank 1"},
           {hello_of_rank(token, 2, 2), "it is no rank of this task, which has 2"},
           {hello_of_rank(token, 0, 3), "it is no rank of this task, which has 2"},
           {hello_of_rank(token, 0, std::nullopt), "it is no rank of this task, which has 2"},
           {hello_of_rank(token, std::nullopt, 2), "it is no rank of this task, which has 2"},
           {hello_of(token), "the task has 2 ranks: who speaks must say which it is"},
           {hello_of_rank(of_one_process, 0, 1),
            "the task has no ranks: 'ranks' in the job file"}}) {
    Caller caller(tasks->path());
    EXPECT_TRUE(caller.say(each.hello + report(model::Said::Failed)));
    run_until_cut_off(caller);
    EXPECT_THAT(caller.received, ElementsAre(refusal(each.why)));
  }
  EXPECT_THAT(said, IsEmpty());
}

}  // namespace
}  // namespace trainyard::link

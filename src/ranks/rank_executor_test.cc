#include "trainyard/rank_executor.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include <sys/stat.h>
#include <sys/wait.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "ranks/test_components.h"
#include "ranks/test_options.h"
#include "sys/test_directory.h"

namespace trainyard::ranks {
namespace {

using namespace std::chrono_literals;

std::vector<std::string> names_of_descriptors() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    names.push_back(std::filesystem::read_symlink(entry.path(), error).string());
  }
  std::ranges::sort(names);
  return names;
}

TEST(RankExecutor, HasEveryRankExecuteATask) {
  RankExecutor executor(test_options(4), test_registry());
  RankContext context;
  const std::vector<Shareable> replies = executor.execute_all("get", {}, context);
  ASSERT_EQ(replies.size(), 4U);
  for (const Shareable& reply : replies) {
    EXPECT_EQ(reply.code(), ReturnCode::Ok) << reply.message() << reply.traceback();
  }
  EXPECT_EQ(replies[0].get("answer"), 42);
  EXPECT_EQ(replies[0].get("rank"), 0);
  EXPECT_EQ(replies[0].get("ranks"), 4);
}

TEST(RankExecutor, ReturnsTheValuesOfEveryRankWhateverItsResultIs) {
  for (const auto how : {RankResult::First, RankResult::All, RankResult::Sum, RankResult::Mean}) {
    RankExecutorOptions options = test_options(3);
    options.result = how;
    RankExecutor executor(options, test_registry());
    RankContext context;
    Shareable task = with({{"count", 4}});
    task.set_buffer("w", Buffer::copy_of<float>({1}, {2}));
    task.set_cookie("round", 7);
    const std::vector<Shareable> replies = executor.execute_all("echo", task, context);
    ASSERT_EQ(replies.size(), 3U);
    for (int rank = 0; rank < 3; ++rank) {
      const Shareable& reply = replies[static_cast<std::size_t>(rank)];
      EXPECT_EQ(reply.values(), (Json{{"count", 4}, {"rank", rank}}));
      EXPECT_EQ(reply.cookie("round"), 7);
      EXPECT_EQ(reply.buffer("w") != nullptr, rank == 0 || how != RankResult::First);
    }
  }
}

TEST(RankExecutor, SendsBuffersAndGetsThemBack) {
  RankExecutor executor(test_options(2), test_registry());
  RankContext context;
  Buffer placed = executor.alloc(DType::Float32, {1000, 100}).value();
  std::ranges::fill(placed.fill<float>(), 2.0F);
  const std::vector<float> large(50'000, 0.5F);
  Shareable task;
  task.set_buffer("placed", placed);
  task.set_buffer("large", Buffer::view_of<float>({50'000}, large));
  task.set_buffer("small", Buffer::copy_of<float>({2, 1}, {3.0F, 4.0F}));
  for (int round = 0; round < 3; ++round) {
    const Shareable reply = executor.execute("sum", task, context);
    EXPECT_EQ(reply.code(), ReturnCode::Ok) << reply.message();
    EXPECT_EQ(reply.values(), (Json{{"placed", 200'000.0}, {"large", 25'000.0}, {"small", 7.0}}));
  }
  const Shareable back = executor.execute("fill", with({{"count", 100'000}}), context);
  ASSERT_NE(back.buffer("filled"), nullptr) << back.message();
  EXPECT_EQ(back.buffer("filled")->count(), 100'000U);
  EXPECT_THAT(back.buffer("filled")->as<float>(), testing::Each(1.0F));
}

TEST(RankExecutor, MergesTheBuffersOfAllRanks) {
  for (const auto& [how, expected] :
       {std::pair{RankResult::Sum, 10.0F}, {RankResult::Mean, 2.5F}}) {
    RankExecutorOptions reducing = test_options(4);
    reducing.result = how;
    RankExecutor executor(reducing, test_registry());
    RankContext context;
    const Shareable reply = executor.execute("fill", with({{"count", 10'000}}), context);
    ASSERT_EQ(reply.code(), ReturnCode::Ok) << reply.message();
    EXPECT_THAT(reply.buffer("filled")->as<float>(), testing::Each(expected));
  }
}

TEST(RankExecutor, ReturnsCookiesWhateverTheExecutorDoes) {
  RankExecutor executor(test_options(1), test_registry());
  RankContext context;
  Shareable task;
  task.set_cookie("round", 7);
  EXPECT_EQ(executor.execute("get", task, context).cookie("round"), 7);
}

TEST(RankExecutor, SendsWhatChangedInItsContextAndTakesWhatRankZeroChanged) {
  constexpr ContextKey<std::string> kGreeting{.name = "greeting"};
  constexpr ContextKey<std::int64_t> kRound{.name = "round", .sticky = true};
  RankExecutor executor(test_options(2), test_registry());
  RankContext context;
  ASSERT_TRUE(context.set(kGreeting, "hello").has_value());
  ASSERT_TRUE(context.set(kRound, 3).has_value());
  Shareable reply = executor.execute("get", with({{"rank", 1}}), context);
  EXPECT_EQ(reply.code(), ReturnCode::Ok);
  reply = executor.execute("get", {}, context);
  EXPECT_EQ(reply.get("greeting"), "hello");
  EXPECT_EQ(reply.get("round"), 3);
  static_cast<void>(executor.execute("set", {}, context));
  EXPECT_EQ(context.get(kGreeting), "from rank 0");
  EXPECT_EQ(context.get(kRound), 40);
  EXPECT_EQ(context.sibling().get(kRound), 40);
  // Another context, which has no greeting: nor has the rank then.
  RankContext other;
  reply = executor.execute("get", {}, other);
  EXPECT_EQ(reply.get("greeting"), "none");
  EXPECT_EQ(reply.get("local_rank"), 0);
  EXPECT_EQ(context.rank(), std::nullopt);
}

TEST(RankExecutor, SaysEveryMistakeInItsConfigurationAndStartsNothing) {
  RankExecutorOptions wrong =
      test_options(2, "- {id: tester, type: tster}\n- {id: a, type: recorder}\n");
  RankExecutor executor(wrong, test_registry());
  RankContext context;
  const Shareable reply = executor.execute("get", {}, context);
  EXPECT_EQ(reply.code(), ReturnCode::BadConfig);
  EXPECT_EQ(reply.message(),
            "components:1:22: components/0: there is no type 'tster' (did you mean 'tester'?)\n"
            "components:2:3: components/1: type 'recorder': the argument 'events' is missing");
  EXPECT_EQ(executor.log_directory(), "");
  EXPECT_FALSE(executor.validate().has_value());
}

// --- events ---

TEST(RankExecutor, TellsRanksOfTheEventsThatTheyListenTo) {
  RankExecutor executor(test_options(2, kWithRecorder), test_registry());
  RankContext context;
  ASSERT_EQ(executor.start(context).code(), ReturnCode::Ok);
  EXPECT_EQ(executor.fire("round", {{"number", 1}}, context).code, ReturnCode::Ok);
  EXPECT_EQ(executor.fire("nobody.listens", {}, context).code, ReturnCode::Ok);
  const EventOutcome thrown = executor.fire("throw", {}, context);
  EXPECT_EQ(thrown.code, ReturnCode::Ok);
  EXPECT_THAT(thrown.errors,
              testing::UnorderedElementsAre("rank 0: std::runtime_error: the recorder throws",
                                            "rank 1: std::runtime_error: the recorder throws"));
  EXPECT_EQ(executor.execute("heard", {}, context).get("heard"),
            (Json{{{"name", "start-run"}, {"data", nullptr}},
                  {{"name", "round"}, {"data", {{"number", 1}}}},
                  {{"name", "throw"}, {"data", nullptr}}}));
}

TEST(RankExecutor, ReportsWhatAHandlerOfAnEventThrowsWithItsCauses) {
  const auto two_lines = [](const std::string& text) {
    return testing::EndsWith(": " + text + "\nbecause of std::out_of_range: row 7");
  };
  RankExecutor executor(test_options(1, kWithRecorder), test_registry());
  executor.on_event(
      [](const RankEvent&, RankContext&) { throw_with_a_cause("the parent cannot read"); });
  RankContext context;
  ASSERT_EQ(executor.start(context).code(), ReturnCode::Ok);
  EXPECT_THAT(executor.fire("throw_nested", {}, context).errors,
              testing::ElementsAre(two_lines("the recorder cannot read")));
  EXPECT_THAT(executor.execute("fire", {}, context).get("errors").get<std::vector<std::string>>(),
              testing::ElementsAre(two_lines("the parent cannot read")));
}

TEST(RankExecutor, HearsTheEventsOfRanksAndAnswersThem) {
  constexpr ContextKey<std::string> kGreeting{.name = "greeting"};
  std::vector<int> from;
  RankExecutor executor(test_options(2, kWithRecorder), test_registry());
  executor.on_event([&](const RankEvent& event, RankContext& context) {
    EXPECT_EQ(event.name, "progress");
    EXPECT_EQ(event.data.at("rank"), event.from_rank.value());
    EXPECT_EQ(context.from_rank(), event.from_rank);
    from.push_back(*event.from_rank);
    EXPECT_TRUE(context.set(kGreeting, "of the parent").has_value());
    if (event.from_rank == 1) throw std::runtime_error("no room");
  });
  RankContext context;
  Shareable reply = executor.execute("fire", with({{"rank", 0}}), context);
  EXPECT_EQ(reply.get("greeting"), "of the parent");
  EXPECT_EQ(reply.get("errors"), Json::array());
  EXPECT_THAT(from, testing::ElementsAre(0));
  static_cast<void>(executor.execute("fire", {}, context));
  EXPECT_THAT(from, testing::UnorderedElementsAre(0, 0, 1));
  // A rank does not receive its own events, and the others do only if it asks for that.
  static_cast<void>(executor.execute("fire", with({{"rank", 0}, {"group", true}}), context));
  const Json heard = executor.execute("heard", {}, context).get("heard");
  EXPECT_EQ(heard.size(), 4U) << heard.dump();
}

TEST(RankExecutor, EndsACycleOfEvents) {
  RankExecutor executor(test_options(1, kWithRecorder), test_registry());
  RankContext context;
  const Shareable reply = executor.execute("cycle", {}, context);
  EXPECT_EQ(reply.code(), ReturnCode::Ok) << reply.message();
  const Json heard = executor.execute("heard", {}, context).get("heard");
  EXPECT_EQ(heard.size(), 21U);
}

// --- ends ---

TEST(RankExecutor, IsTheSameAfterAnExceptionInARank) {
  RankExecutor executor(test_options(2), test_registry());
  RankContext context;
  const Shareable reply = executor.execute("throw", with({{"rank", 1}}), context);
  EXPECT_EQ(reply.code(), ReturnCode::ExecutionException);
  EXPECT_EQ(reply.message(), "rank 1: std::runtime_error: cannot train");
  EXPECT_EQ(executor.execute("get", {}, context).code(), ReturnCode::Ok);
}

TEST(RankExecutor, TellsTheOthersToStopWhenOneThrows) {
  RankExecutor executor(test_options(3), test_registry());
  RankContext context;
  const Shareable reply =
      executor.execute("throw", with({{"rank", 1}, {"others_wait", true}}), context);
  EXPECT_EQ(reply.message(), "rank 1: std::runtime_error: cannot train");
  EXPECT_EQ(executor.execute("get", {}, context).code(), ReturnCode::Ok);
}

TEST(RankExecutor, SaysThatMemoryRanOut) {
  RankExecutor executor(test_options(2), test_registry());
  RankContext context;
  EXPECT_EQ(executor.execute("bad_alloc", with({{"rank", 1}}), context).code(),
            ReturnCode::OutOfMemory);
}

TEST(RankExecutor, PassesOnWhatARankSaysOfItsResult) {
  RankExecutor executor(test_options(2), test_registry());
  RankContext context;
  const Shareable reply = executor.execute("code", with({{"rank", 1}}), context);
  EXPECT_EQ(reply.code(), ReturnCode::EmptyResult);
  EXPECT_EQ(reply.message(), "rank 1: nothing here");
}

TEST(RankExecutor, SaysHowARankDiedAndLaunchesTheGroupForTheNextTask) {
  RankExecutor executor(test_options(3), test_registry());
  RankContext context;
  Shareable reply = executor.execute("kill", with({{"rank", 1}, {"others_wait", true}}), context);
  EXPECT_EQ(reply.code(), ReturnCode::RankDied);
  EXPECT_EQ(reply.message(), "rank 1 was killed by signal 9");
  EXPECT_EQ(reply.traceback(), "last words\n");
  EXPECT_EQ(executor.execute("get", {}, context).code(), ReturnCode::Ok);
  reply = executor.execute("exit", with({{"rank", 2}, {"code", 3}}), context);
  EXPECT_EQ(reply.message(), "rank 2 exited with code 3");
  EXPECT_EQ(executor.execute("get", {}, context).code(), ReturnCode::Ok);
}

TEST(RankExecutor, TriesATaskAgainAfterADeathAsOftenAsItIsAsked) {
  RankExecutorOptions again = test_options(2);
  again.restarts = 2;
  std::vector<std::string> notes;
  again.note = [&](std::string_view what) { notes.emplace_back(what); };
  RankExecutor executor(again, test_registry());
  RankContext context;
  const Shareable reply = executor.execute("exit", with({{"rank", 1}, {"code", 3}}), context);
  EXPECT_EQ(reply.code(), ReturnCode::RankDied);
  EXPECT_THAT(notes, testing::ElementsAre("task 'exit' is retried: rank 1 exited with code 3",
                                          "task 'exit' is retried: rank 1 exited with code 3"));
}

TEST(RankExecutor, AbortsATaskAndKeepsItsRanks) {
  std::stop_source stop;
  RankExecutor executor(test_options(2), test_registry());
  executor.on_event([&](const RankEvent&, RankContext&) { stop.request_stop(); });
  RankContext context;
  ASSERT_EQ(executor.start(context).code(), ReturnCode::Ok);
  const Json pid = executor.execute("pid", {}, context).get("pid");
  Shareable reply = executor.execute("fire", {}, context, stop.get_token());
  EXPECT_EQ(reply.code(), ReturnCode::TaskAborted);
  EXPECT_EQ(reply.message(), "it was told to stop");
  EXPECT_EQ(executor.execute("get", {}, context, stop.get_token()).code(), ReturnCode::TaskAborted);
  EXPECT_EQ(executor.execute("pid", {}, context).get("pid"), pid);
}

TEST(RankExecutor, EndsRanksThatDoNotStopAndSaysSo) {
  RankExecutorOptions short_limits = test_options(2);
  short_limits.limits.execute = 500ms;
  short_limits.limits.stop = 200ms;
  RankExecutor executor(short_limits, test_registry());
  RankContext context;
  const Shareable reply = executor.execute("hang", with({{"rank", 1}}), context);
  EXPECT_EQ(reply.code(), ReturnCode::Timeout);
  EXPECT_EQ(reply.message(), "rank 1 did not end within 0.5 s (limit 'execute')");
  EXPECT_EQ(executor.execute("get", {}, context).code(), ReturnCode::Ok);
}

TEST(RankExecutor, DoesOneTaskAtATime) {
  Shareable second;
  RankExecutor executor(test_options(1), test_registry());
  executor.on_event([&](const RankEvent&, RankContext&) {
    RankContext other;
    second = executor.execute("get", {}, other);
  });
  RankContext context;
  EXPECT_EQ(executor.execute("fire", {}, context).code(), ReturnCode::Ok);
  EXPECT_EQ(second.code(), ReturnCode::Busy);
}

// --- launching ---

TEST(RankExecutor, SaysWhyAComponentCouldNotBeMade) {
  for (const auto& [fault, message] :
       {std::pair<std::string, std::string>{"throw", "rank 1: std::runtime_error: no such file"},
        {"exit", "rank 1 exited with code 7"}}) {
    RankExecutor executor(test_options(2, "[{id: tester, type: tester, args: {fault: " + fault +
                                              ", fault_rank: 1}}]"),
                          test_registry());
    RankContext context;
    const Shareable reply = executor.start(context);
    EXPECT_EQ(reply.code(), ReturnCode::InitFailed);
    EXPECT_EQ(reply.message(), message);
  }
}

TEST(RankExecutor, NamesTheLimitThatEndedALaunch) {
  RankExecutorOptions slow =
      test_options(2, "[{id: tester, type: tester, args: {fault: wait, fault_rank: 1}}]");
  slow.limits.initialise = 500ms;
  RankExecutor executor(slow, test_registry());
  RankContext context;
  EXPECT_EQ(executor.start(context).message(),
            "rank 1 did not make all components within 0.5 s (limit 'initialise')");
  slow.limits.launch = 200ms;
  slow.program = {"/bin/sleep", "1000"};
  RankExecutor silent(slow, test_registry());
  EXPECT_EQ(silent.start(context).message(),
            "ranks 0, 1 did not connect within 0.2 s (limit 'launch')");
}

TEST(RankExecutor, SaysWhatProgramThereIsNot) {
  RankExecutorOptions missing = test_options(1);
  missing.program = {"no-such-program"};
  RankExecutor executor(missing, test_registry());
  RankContext context;
  const Shareable reply = executor.start(context);
  EXPECT_EQ(reply.code(), ReturnCode::LaunchFailed);
  EXPECT_EQ(reply.message(),
            "rank 0 was not started: cannot run 'no-such-program': program not found on PATH; "
            "install it, or write its full path");
}

TEST(RankExecutor, AbortsALaunch) {
  for (const char* const fault : {"wait", "hang"}) {
    const sys::TemporaryDirectory directory;
    const std::string here = directory.path() + "/here";
    ASSERT_EQ(::mkfifo(here.c_str(), 0600), 0);
    RankExecutorOptions slow = test_options(
        2,
        fmt::format("[{{id: tester, type: tester, args: {{fault: {}, fault_rank: 1, here: {}}}}}]",
                    fault, here));
    slow.limits.stop = 200ms;
    RankExecutor executor(slow, test_registry());
    RankContext context;
    std::stop_source stop;
    const std::jthread later([&] {
      std::ifstream(here).get();
      stop.request_stop();
    });
    EXPECT_EQ(executor.start(context, stop.get_token()).code(), ReturnCode::TaskAborted);
  }
}

TEST(RankExecutor, TellsRanksWhoTheyAre) {
  RankExecutor executor(test_options(2), test_registry());
  RankContext context;
  const Json names = {"RANK",        "LOCAL_RANK",          "WORLD_SIZE", "LOCAL_WORLD_SIZE",
                      "MASTER_ADDR", "TRAINYARD_RANK_TOKEN"};
  const Json values =
      executor.execute("environment", with({{"names", names}}), context).get("value");
  EXPECT_EQ(values, (Json{{"RANK", "0"},
                          {"LOCAL_RANK", "0"},
                          {"WORLD_SIZE", "2"},
                          {"LOCAL_WORLD_SIZE", "2"},
                          {"MASTER_ADDR", "127.0.0.1"},
                          {"TRAINYARD_RANK_TOKEN", nullptr}}));
}

// --- closing ---

TEST(RankExecutor, LeavesNothingBehind) {
  std::vector<std::string> before = names_of_descriptors();
  Json detached;
  {
    RankExecutor executor(test_options(2, kWithRecorder), test_registry());
    RankContext context;
    detached = executor.execute("detach", {}, context).get("pid");
    ASSERT_EQ(::kill(detached.get<int>(), 0), 0);
    executor.finalize();
    executor.finalize();
    EXPECT_NE(::kill(detached.get<int>(), 0), 0);
  }
  EXPECT_EQ(names_of_descriptors(), before);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
}

TEST(RankExecutor, LaunchesNothingOnceItIsFinalized) {
  for (const bool started : {true, false}) {
    RankExecutor executor(test_options(1), test_registry());
    RankContext context;
    if (started) {
      ASSERT_EQ(executor.start(context).code(), ReturnCode::Ok);
    }
    executor.finalize();
    const Shareable reply = executor.execute("get", {}, context);
    EXPECT_EQ(reply.code(), ReturnCode::LaunchFailed);
    EXPECT_EQ(reply.message(),
              "this RankExecutor has been finalized: make another one for more tasks");
    EXPECT_EQ(executor.start(context).code(), ReturnCode::LaunchFailed);
    EXPECT_EQ(executor.execute_all("get", {}, context).front().code(), ReturnCode::LaunchFailed);
    EXPECT_EQ(executor.log_directory(), "");
  }
}

TEST(RankExecutor, CanBeFinalizedByAHandler) {
  const std::vector<std::string> before = names_of_descriptors();
  {
    RankExecutor executor(test_options(2), test_registry());
    executor.on_event([&](const RankEvent&, RankContext&) { executor.finalize(); });
    RankContext context;
    EXPECT_EQ(executor.execute("fire", {}, context).code(), ReturnCode::TaskAborted);
  }
  EXPECT_EQ(names_of_descriptors(), before);
}

TEST(RankExecutor, KeepsALogOfEachRank) {
  const sys::TemporaryDirectory logs;
  RankExecutorOptions logged = test_options(2);
  logged.log_directory = logs.path();
  RankExecutor executor(logged, test_registry());
  RankContext context;
  static_cast<void>(executor.execute("print", {}, context));
  for (const char* const rank : {"0", "1"}) {
    std::ifstream log(logged.log_directory + "/rank-" + rank + ".log");
    const std::string text(std::istreambuf_iterator<char>(log), {});
    EXPECT_EQ(text, std::string("line of rank ") + rank + '\n');
  }
}

}  // namespace
}  // namespace trainyard::ranks

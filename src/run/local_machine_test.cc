// The machine we are on, with a real keeper and real processes.
#include "run/local_machine.h"

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/time.h"
#include "io/event_loop.h"
#include "io/keeper.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/launch.h"
#include "model/resources.h"
#include "run/machine.h"

namespace trainyard {
namespace {

constexpr Duration kLongEnough{30'000};
constexpr AttemptKey kFirst{.task = {0}, .attempt = 1};

/// A yard that starts one shell command, which leaves its result as a task does.
class LocalMachineTest : public ::testing::Test {
 public:
  LocalMachineTest() {
    std::string name = (std::filesystem::temp_directory_path() / "trainyard-test-XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    place_ = name;
  }
  ~LocalMachineTest() override { std::filesystem::remove_all(place_); }

 protected:
  LocalMachine machine(std::string command, Duration sample_every) {
    return {loop_, keeper_,
            LocalMachine::Options{.capacity = {.memory = gb(1), .cpus = cpus(2)},
                                  .begins = {Duration{5'000}},
                                  .sample_every = sample_every,
                                  .launch = [this, command = std::move(command)](
                                                AttemptKey, const std::vector<GpuIndex>&) {
                                    return Launch{.arguments = {"/bin/sh", "-c", command},
                                                  .environment = {},
                                                  .working_directory = place_,
                                                  .task_directory = place_ + "/task",
                                                  .stdout_path = place_ + "/task/stdout.log",
                                                  .stderr_path = place_ + "/task/stderr.log",
                                                  .result_path = place_ + "/task/result.json"};
                                  }}};
  }

  /// What comes until the attempt has ended; empty when it did not in time.
  static std::vector<Event> until_the_end(LocalMachine& machine) {
    std::vector<Event> all;
    const Duration end = io::EventLoop::now() + kLongEnough;
    while (io::EventLoop::now() < end) {
      for (Event& event : machine.wait(std::nullopt)) {
        all.push_back(event);
        if (std::holds_alternative<AttemptEnded>(event.what)) return all;
      }
    }
    return {};
  }

  io::EventLoop loop_;
  io::Keeper keeper_ = io::Keeper::fork({}).value();
  std::string place_;
};

TEST_F(LocalMachineTest, TellsOfAnAttemptInTheTimeOfTheRun) {
  LocalMachine yard = machine("echo '{\"x\": 1}' > task/result.json; exit 3", Duration{1000});
  const FirstLook first = yard.look();
  EXPECT_GE(first.at, Instant{Duration{5'000}}) << "a resumed run goes on counting";
  yard.carry_out(StartAttempt{.key = kFirst, .promise = {}});
  const std::vector<Event> events = until_the_end(yard);
  ASSERT_GE(events.size(), 2U);
  EXPECT_TRUE(std::holds_alternative<AttemptStarted>(events.front().what));
  const auto& ended = std::get<AttemptEnded>(events.back().what);
  EXPECT_EQ(ended.key, kFirst);
  EXPECT_EQ(ended.end, End(ExitedWith{3}));
  EXPECT_EQ(ended.result, R"({"x":1})");
  for (std::size_t i = 1; i < events.size(); ++i) EXPECT_LE(events[i - 1].at, events[i].at);
}

TEST_F(LocalMachineTest, HearsOfEndsThoughALookAtTheMachineIsAlwaysDue) {
  LocalMachine yard = machine("exit 0", Duration{0});
  static_cast<void>(yard.look());
  yard.carry_out(StartAttempt{.key = kFirst, .promise = {}});
  EXPECT_FALSE(until_the_end(yard).empty());
}

TEST_F(LocalMachineTest, LooksOnceAfterALongPause) {
  constexpr Duration kEvery{50};
  LocalMachine yard = machine("exit 0", kEvery);
  const Instant before = yard.look().at;
  // The time passes as it does for a machine that sleeps: nobody asks.
  const Duration woken = io::EventLoop::now() + 10 * kEvery;
  while (io::EventLoop::now() < woken) continue;
  const Instant first = yard.wait(std::nullopt).front().at;
  EXPECT_GE(first - before, 10 * kEvery);
  EXPECT_GE(yard.wait(std::nullopt).front().at - first, kEvery);
}

TEST_F(LocalMachineTest, AnswersAKillRequestOnceItIsDecided) {
  LocalMachine yard = machine("exit 0", Duration{1000});
  std::vector<bool> answers;
  loop_.post([&] { yard.ask_to_kill({7}, [&](bool done) { answers.push_back(done); }); });
  const std::vector<Event> events = yard.wait(std::nullopt);
  const auto& asked = std::get<KillAsked>(events.back().what);
  EXPECT_EQ(asked.task, TaskIndex{7});
  EXPECT_THAT(answers, ::testing::IsEmpty());
  yard.carry_out(AnswerKill{.request = asked.request, .done = true});
  yard.carry_out(AnswerKill{.request = asked.request, .done = true});
  EXPECT_THAT(answers, ::testing::ElementsAre(true)) << "once";
}

}  // namespace
}  // namespace trainyard

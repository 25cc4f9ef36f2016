// A program whose keeper dies while it runs its tasks.
#include <condition_variable>
#include <csignal>
#include <filesystem>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include <sys/types.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "library/test_yard.h"
#include "sys/process_scan.h"
#include "sys/test_wait.h"
#include "trainyard/trainyard.h"

namespace trainyard::library {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// For a task: waits until whoever watches it has ended, and it with that one.
[[noreturn]] void wait_for_the_end() {
  for (;;) ::pause();
}

TEST_F(YardTest, GoesOnWithAnotherKeeperWhereTheirOwnDies) {
  TaskGroup group("g");
  const std::string shared = "loaded before";
  auto& deadly = group.add<Made>("deadly", [](Made&, const Device&) -> Json {
    if (variable("TRAINYARD_ATTEMPT") != "1") return {{"attempt", variable("TRAINYARD_ATTEMPT")}};
    // Not before the other one trains as well.
    EXPECT_TRUE(sys::eventually([] { return std::filesystem::exists("../other/begun"); }));
    ::kill(::getppid(), SIGKILL);
    wait_for_the_end();
  });
  auto& other = group.add<Made>("other", [&shared](Made&, const Device&) -> Json {
    std::filesystem::create_directory("begun");
    if (variable("TRAINYARD_ATTEMPT") == "1") wait_for_the_end();
    return {{"saw", shared}};
  });
  const RunSummary done = run(group);
  EXPECT_EQ(done.finished, 2);
  EXPECT_EQ(deadly.result(), (Json{{"attempt", "2"}}));
  EXPECT_EQ(other.result(), (Json{{"saw", shared}}));
  EXPECT_THAT(notes, ElementsAre(AllOf(HasSubstr("was killed by signal 9: process "),
                                       HasSubstr("2 running tasks were lost with it"))));
}

TEST_F(YardTest, GoesOnWithAnotherKeeperBesideItsOwnThreads) {
  std::jthread idle([](const std::stop_token& stop) {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any().wait(lock, stop, [] { return false; });
  });
  TaskGroup group("g");
  auto& task = group.add<Made>("deadly", [](Made&, const Device&) -> Json {
    if (variable("TRAINYARD_ATTEMPT") == "3") return {{"ok", true}};
    ::kill(::getppid(), SIGKILL);
    wait_for_the_end();
  });
  Yard yard(config(), options(Fork::AnyThreads));
  const Result<RunSummary> done = yard.run(group);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->finished, 1);
  EXPECT_EQ(task.result(), (Json{{"ok", true}}));
}

TEST_F(YardTest, EndsARunWhoseGuardDiesAndGoesOnWithTheNext) {
  TaskGroup group("g", {}, {.parallel_max = 1});
  auto& deadly = group.add<Made>("deadly", [](Made&, const Device&) -> Json {
    const auto keeper = sys::ProcessScan().read(::getppid());
    ::kill(static_cast<pid_t>(keeper->parent), SIGKILL);
    wait_for_the_end();
  });
  auto& waits = group.add<Made>("waits", [](Made&, const Device&) { return Json::object(); });
  Yard yard(config(), options());
  const Result<RunSummary> done = yard.run(group);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->failed, 0);
  EXPECT_EQ(done->stopped, 2);
  EXPECT_EQ(deadly.outcome(), TaskOutcome::Stopped);
  EXPECT_EQ(waits.outcome(), TaskOutcome::Stopped);
  EXPECT_THAT(
      notes,
      Contains(HasSubstr("the process that starts tasks is gone: unfinished tasks have ended")));
  TaskGroup next("next");
  next.add<Made>("task", [](Made&, const Device&) { return Json::object(); });
  const Result<RunSummary> again = yard.run(next);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->finished, 1);
}

}  // namespace
}  // namespace trainyard::library

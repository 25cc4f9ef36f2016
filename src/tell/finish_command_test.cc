// With real commands.
#include "tell/finish_command.h"

#include <csignal>
#include <filesystem>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sys/descriptor.h"
#include "sys/test_directory.h"
#include "sys/test_wait.h"

namespace trainyard::tell {
namespace {

using ::testing::ElementsAre;

const RunName kRun{.job = "digits", .number = 46, .directory = "/r/d", .host = "gpu1"};

TEST(FinishCommand, HasWhatCameOfTheRunInItsEnvironment) {
  const Counts counts{.tasks = 9, .finished = 3, .failed = 1, .skipped = 2, .stopped = 3};
  EXPECT_THAT(finish_variables(kRun, counts, {.outcome = Outcome::Interrupted, .exit_code = 130}),
              ElementsAre("TRAINYARD_RUN=46", "TRAINYARD_JOB=digits", "TRAINYARD_RUN_DIR=/r/d",
                          "TRAINYARD_OUTCOME=interrupted", "TRAINYARD_EXIT_CODE=130",
                          "TRAINYARD_TASKS=9", "TRAINYARD_FINISHED=3", "TRAINYARD_FAILED=1",
                          "TRAINYARD_SKIPPED=2", "TRAINYARD_STOPPED=3"));
}

TEST(FinishCommand, RunsInItsDirectoryAndLeavesItsOutputInItsLog) {
  const sys::TemporaryDirectory place;
  const auto trouble = run_finish_command({.command = "pwd; echo $TRAINYARD_OUTCOME; echo e >&2",
                                           .directory = place.path(),
                                           .log = place / "log"},
                                          {"TRAINYARD_OUTCOME=failed"});
  EXPECT_EQ(trouble, std::nullopt);
  EXPECT_EQ(sys::content_of(place / "log"), place.path() + "\nfailed\ne\n");
}

TEST(FinishCommand, RunsInBashAsTheTextOfATaskDoes) {
  const sys::TemporaryDirectory place;
  const auto trouble = [&](const std::string& command) {
    return run_finish_command({.command = command, .directory = place.path(), .log = place / "log"},
                              {});
  };
  EXPECT_EQ(trouble("ended=(a b); [[ ${#ended[@]} == 2 ]]"), std::nullopt);
  EXPECT_EQ(trouble("exit 3 | cat"), "on-finish: exited with code 3");
  EXPECT_EQ(trouble("exit 141 | cat"), std::nullopt) << "as SIGPIPE leaves it";
}

TEST(FinishCommand, SaysWhatIsWrongWithIt) {
  const sys::TemporaryDirectory place;
  const auto trouble = [&](const std::string& command, const std::string& log,
                           Duration most = sys::kLongEnough) {
    return run_finish_command({.command = command,
                               .directory = place.path(),
                               .log = log,
                               .most = most,
                               .grace = Duration(50)},
                              {});
  };
  EXPECT_EQ(trouble("exit 7", place / "log"), "on-finish: exited with code 7");
  EXPECT_EQ(trouble("kill -9 $$", place / "log"), "on-finish: was killed by signal 9");
  EXPECT_EQ(trouble("trap '' TERM; while :; do sleep 1; done", place / "log", Duration(200)),
            "on-finish: did not exit within 0.2 s, and was killed");
  EXPECT_EQ(trouble("true", "/nowhere/log"),
            "on-finish: cannot write '/nowhere/log': no such file or directory");
}

TEST(FinishCommand, EndsAlsoWhereTheRunIsKilledMeanwhile) {
  const sys::TemporaryDirectory place;
  int end = 0;
  // A busy machine may take longer than the command has to get it ready: then the run ends first.
  for (Duration most{1'000}; !WIFSIGNALED(end); most *= 2) {
    ASSERT_LT(most, sys::kLongEnough) << "it was never ready";
    std::filesystem::remove(place / "ready");
    const pid_t run = ::fork();
    if (run == 0) {
      static_cast<void>(
          run_finish_command({.command = "exec 9> lock; flock 9; : > ready; sleep 1000",
                              .directory = place.path(),
                              .log = place / "log",
                              .most = most,
                              .grace = Duration(60'000),
                              .margin = Duration(0)},
                             {}));
      ::_exit(0);
    }
    siginfo_t seen{};
    ASSERT_TRUE(sys::eventually([&] {
      return std::filesystem::exists(place / "ready") ||
             (::waitid(P_PID, static_cast<id_t>(run), &seen, WEXITED | WNOHANG | WNOWAIT) == 0 &&
              seen.si_pid == run);
    }));
    ::kill(run, SIGKILL);
    ::waitpid(run, &end, 0);
  }
  const sys::Descriptor lock(::open((place / "lock").c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_EQ(::flock(lock.get(), LOCK_EX), 0) << "which all of its processes had";
}

}  // namespace
}  // namespace trainyard::tell

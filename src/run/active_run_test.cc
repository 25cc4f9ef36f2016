// A run is active by its lock, and by its keeper and guard where the lock has been replaced.
#include "run/active_run.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "process/keeper.h"
#include "sys/descriptor.h"
#include "sys/test_directory.h"
#include "sys/test_wait.h"

namespace trainyard::run {
namespace {

TEST(ActiveRun, StaysLockedWhenATaskReplacesTheLock) {
  const sys::TemporaryDirectory run;
  EXPECT_EQ(active_process(run.path()), std::nullopt);
  {
    process::Keeper keeper = process::Keeper::fork({.beside_threads = true}).value();
    const Result<sys::RunLock> lock = lock_run(run.path());
    ASSERT_TRUE(lock.has_value());
    EXPECT_EQ(active_process(run.path()), ::getpid());
    keeper.note_ends({.path = run / "trainyard.ends"});
    ASSERT_TRUE(sys::eventually([&] { return process::watchers_of(run.path()).size() == 2; }));
    std::filesystem::remove(run / "lock");
    run.write("lock", "");
    EXPECT_EQ(active_process(run.path()), ::getpid());
    EXPECT_EQ(active_process(run.path(), {}), std::nullopt);
    EXPECT_EQ(active_process(run.path(), process::find_watchers()), ::getpid());
    const Result<sys::RunLock> second = lock_run(run.path());
    ASSERT_FALSE(second.has_value());
    EXPECT_EQ(second.error().message,
              fmt::format("'{}' is in use by process {}", run.path(), ::getpid()));
  }
  EXPECT_EQ(active_process(run.path()), std::nullopt);
  EXPECT_TRUE(lock_run(run.path()).has_value());
}

TEST(ActiveRun, IsLockedAlthoughATaskHasPutSomethingInThePlaceOfTheLock) {
  const sys::TemporaryDirectory run;
  run.write("mine", "mine");
  const std::string lock = run / "lock";
  const auto is_locked = [&run] { return lock_run(run.path()).has_value(); };
  ASSERT_EQ(::mkfifo(lock.c_str(), 0600), 0);
  EXPECT_FALSE(is_locked()) << "no task has run here: it is the user's";
  run.write("journal.db", "");
  EXPECT_TRUE(is_locked());
  std::filesystem::remove(lock);
  std::filesystem::create_hard_link(run / "mine", lock);
  EXPECT_TRUE(is_locked());
  EXPECT_EQ(sys::content_of(run / "mine"), "mine");
  std::filesystem::remove(lock);
  std::filesystem::create_directories(lock);
  run.write("lock/mine", "mine");
  EXPECT_TRUE(is_locked());
  {
    const Result<sys::RunLock> held = lock_run(run.path());
    ASSERT_TRUE(held.has_value());
    std::filesystem::create_hard_link(lock, run / "copy");
    EXPECT_FALSE(is_locked()) << "as after 'cp -al' of an active run";
  }
  std::filesystem::remove(lock);
  ASSERT_EQ(::mkfifo(lock.c_str(), 0600), 0);
  const sys::Descriptor turn(::open(run.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(::flock(turn.get(), LOCK_EX), 0);
  EXPECT_FALSE(is_locked()) << "another process may just be taking the lock";
}

TEST(ActiveRun, IsNotTheProcessThatInheritsTheGuardOfADeadRun) {
  const sys::TemporaryDirectory run;
  ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  const pid_t yard = ::fork();
  if (yard == 0) {
    ::setenv("TMPDIR", run.path().c_str(), 1);  // So that what it leaves goes with ours.
    process::Keeper keeper = process::Keeper::fork({.beside_threads = true}).value();
    const Result<sys::RunLock> lock = lock_run(run.path());
    keeper.note_ends({.path = run / "trainyard.ends"});
    for (;;) ::pause();
  }
  ASSERT_TRUE(sys::eventually([&] { return process::watchers_of(run.path()).size() == 2; }));
  const std::vector<process::Watcher> watchers = process::watchers_of(run.path());
  const auto of_yard = std::ranges::find(watchers, yard, &process::Watcher::yard);
  ASSERT_NE(of_yard, watchers.end());
  const auto guard = static_cast<pid_t>(of_yard->pid);
  ::kill(guard, SIGSTOP);
  ::kill(yard, SIGKILL);
  ::waitpid(yard, nullptr, 0);
  const Result<sys::RunLock> lock = lock_run(run.path());
  EXPECT_TRUE(lock.has_value()) << lock.error().message;
  ::kill(guard, SIGCONT);
  EXPECT_TRUE(process::wait_for_watchers(run.path(), sys::kLongEnough));
  ::waitpid(guard, nullptr, 0);
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
}

}  // namespace
}  // namespace trainyard::run

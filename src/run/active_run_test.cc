// A run is active by its lock, and by its keeper and guard where the lock has been replaced.
#include "run/active_run.h"

#include <filesystem>
#include <vector>

#include <unistd.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "process/keeper.h"
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

}  // namespace
}  // namespace trainyard::run

// Keepers and guards are found by the directory of their run, whatever becomes of its path.
#include "process/watchers.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "process/guard.h"
#include "process/test_yard.h"

namespace trainyard::process {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> names_of(const std::vector<Watcher>& watchers) {
  std::vector<std::string> names;
  for (const Watcher& watcher : watchers) names.push_back(watcher.name);
  return names;
}

/// A yard that has locked the directory and named it to its keeper and guard.
class LockedRun {
 public:
  explicit LockedRun(const std::string& directory) : lock_(sys::RunLock::take(directory).value()) {
    yard.keeper.note_ends({.path = directory + "/trainyard.ends"});
  }

  TestYard yard;

 private:
  sys::RunLock lock_;
};

void expect_both_eventually(const std::string& directory) {
  EXPECT_TRUE(sys::eventually([&] { return watchers_of(directory).size() == 2; }));
  EXPECT_THAT(names_of(watchers_of(directory)), ElementsAre(kGuardName, kKeeperName));
}

TEST(Watchers, AreThoseOfTheDirectoryAndNotOfItsPath) {
  const sys::TemporaryDirectory place;
  place.make("run");
  LockedRun run(place / "run");
  expect_both_eventually(place / "run");
  EXPECT_EQ(watchers_of(place / "run").front().pid, run.yard.keeper.guard_pid());
  EXPECT_THAT(watchers_of(place.path()), IsEmpty());
  EXPECT_THAT(watchers_of(place / "none"), IsEmpty());

  std::filesystem::rename(place / "run", place / "moved");
  place.make("run");
  EXPECT_THAT(watchers_of(place / "run"), IsEmpty());
  const std::int64_t first = run.yard.keeper.pid();
  ::kill(static_cast<pid_t>(first), SIGKILL);
  ASSERT_TRUE(run.yard.wait([&] { return run.yard.keeper.pid() != first; }));
  EXPECT_EQ(run.yard.run(run.yard.launch({"true"})), model::End(model::ExitedWith{0}));
  EXPECT_THAT(watchers_of(place / "run"), IsEmpty()) << "the keeper in place of the first one";
  expect_both_eventually(place / "moved");
}

TEST(Watchers, KnowTheYardThatHasTheirDirectoryOpen) {
  const sys::TemporaryDirectory place;
  LockedRun run(place.path());
  expect_both_eventually(place.path());
  const std::vector<Watcher> watchers = watchers_of(place.path());
  EXPECT_EQ(watchers.front().yard, ::getpid());
  EXPECT_EQ(watchers.back().yard, 0) << "its parent is the guard";

  const sys::TemporaryDirectory without_lock;
  TestYard other;
  other.keeper.note_ends({.path = without_lock / "trainyard.ends"});
  expect_both_eventually(without_lock.path());
  EXPECT_EQ(watchers_of(without_lock.path()).front().yard, 0);
}

TEST(Watchers, AreWaitedForWhenTheirYardHasDied) {
  const sys::TemporaryDirectory place;
  const pid_t yard = ::fork();
  if (yard == 0) {
    ::setenv("TMPDIR", place.path().c_str(), 1);  // So that what it leaves goes with ours.
    const LockedRun run(place.path());
    for (;;) ::pause();
  }
  expect_both_eventually(place.path());
  const Watcher guard = watchers_of(place.path()).front();
  EXPECT_EQ(guard.yard, yard);
  ::kill(static_cast<pid_t>(guard.pid), SIGSTOP);
  ::kill(yard, SIGKILL);
  ::waitpid(yard, nullptr, 0);
  std::vector<std::int64_t> told;
  const auto tell = [&told](const Watcher& watcher) { told.push_back(watcher.pid); };
  EXPECT_FALSE(wait_for_watchers(place.path(), Duration{0}, tell));
  EXPECT_THAT(told, IsEmpty());
  EXPECT_FALSE(wait_for_watchers(place.path(), Duration{3'000}, tell));
  EXPECT_THAT(told, ElementsAre(guard.pid));
  EXPECT_EQ(watchers_of(place.path()).front().yard, 0);
  ::kill(static_cast<pid_t>(guard.pid), SIGCONT);
  EXPECT_TRUE(wait_for_watchers(place.path(), sys::kLongEnough));
}

TEST(Watchers, AreNoOtherProcessesInTheDirectory) {
  const sys::TemporaryDirectory place;
  const pid_t task = ::fork();
  if (task == 0) {
    ::prctl(PR_SET_NAME, "task");
    if (::chdir(place.path().c_str()) == 0) std::ofstream("there").close();
    for (;;) ::pause();
  }
  EXPECT_TRUE(sys::eventually([&] { return std::filesystem::exists(place / "there"); }));
  EXPECT_THAT(watchers_of(place.path()), IsEmpty());
  ::kill(task, SIGKILL);
  ::waitpid(task, nullptr, 0);
}

}  // namespace
}  // namespace trainyard::process

// Nothing of a yard is left, whichever of yard, guard and keeper is killed.
#include "process/guard.h"

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/check.h"
#include "base/time.h"
#include "hardware/cgroup.h"
#include "model/event.h"
#include "model/launch.h"
#include "process/keeper.h"
#include "process/test_yard.h"
#include "sys/event_loop.h"
#include "sys/files.h"
#include "sys/process_scan.h"
#include "sys/test_directory.h"
#include "sys/test_wait.h"

namespace trainyard::process {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// What is started: a command, one that changes session twice and hides its environment, one with
/// children of its own, one that starts such that hide while it is ended; and on wish one that does
/// not end on TERM.
constexpr const char* kPlain = "echo $$ > plain; sleep 1000";
constexpr const char* kHidden =
    "(setsid sh -c '(env -i setsid sh -c \"echo \\$\\$ > hidden; sleep 1000; :\" &)' &); sleep "
    "1000";
constexpr const char* kParent = "sleep 1001 & echo $! > child; echo $$ > parent; wait";
constexpr const char* kForking =
    "echo $$ > forking; i=0; while [ $i -lt 500 ]; do env -i setsid sleep 1000 & sleep 0.002; "
    "i=$((i+1)); done; wait";
constexpr const char* kStubborn = "trap '' TERM; echo $$ > stubborn; while :; do sleep 0.01; done";

/// A yard in a process of its own, that leads a group, with tasks that run.
class Family {
 public:
  explicit Family(bool stubborn, Duration grace = kGrace) : yard_(::fork()) {
    if (yard_ == 0) be_a_yard(stubborn, grace);
    for (const char* const name :
         {"plain", "hidden", "child", "parent", "forking", "guard", "keeper"}) {
      pids_.push_back(pid_in(place_ / name));
    }
    keeper_ = static_cast<pid_t>(pids_.back());
    guard_ = static_cast<pid_t>(pids_[pids_.size() - 2]);
    if (stubborn) pids_.push_back(pid_in(place_ / "stubborn"));
  }
  Family(Family&&) = delete;
  Family& operator=(Family&&) = delete;
  ~Family() {
    end_yard();
    for (const std::int64_t pid : pids_) ::kill(static_cast<pid_t>(pid), SIGKILL);
  }

  [[nodiscard]] pid_t yard() const { return yard_; }
  [[nodiscard]] pid_t guard() const { return guard_; }
  [[nodiscard]] pid_t keeper() const { return keeper_; }

  void end_yard() {
    if (yard_ == 0) return;
    ::kill(yard_, SIGKILL);
    ::waitpid(yard_, nullptr, 0);
    yard_ = 0;
  }

  /// Waits for the end of all but the yard. Tasks have half a minute after TERM: what takes less is
  /// not waiting for that.
  [[nodiscard]] bool nobody_is_left() const {
    const Duration before = sys::EventLoop::now();
    const bool gone = sys::eventually([this] {
      return std::ranges::none_of(pids_, [](std::int64_t pid) { return is_alive(pid); });
    });
    return gone && sys::EventLoop::now() - before < kGrace / 2;
  }

 private:
  static constexpr Duration kGrace{30'000};

  void tell(const std::string& name, std::int64_t pid) const {
    check(sys::replace_file(place_ / name, fmt::format("{}\n", pid)).has_value(),
          "a place to write to");
  }

  [[noreturn]] void be_a_yard(bool stubborn, Duration grace) const {
    ::setpgid(0, 0);
    ::setenv("TMPDIR", place_.path().c_str(), 1);  // So that what it leaves goes with ours.
    TestYard yard({.stop_grace = grace});
    std::vector<std::string> tasks{kPlain, kHidden, kParent, kForking};
    if (stubborn) tasks.emplace_back(kStubborn);
    for (std::uint32_t i = 0; i < tasks.size(); ++i) {
      model::Launch launch = yard.shell(tasks[i], i);
      launch.working_directory = place_.path();
      yard.keeper.start(TestYard::key(i), launch);
    }
    tell("guard", yard.keeper.guard_pid());
    tell("keeper", yard.keeper.pid());
    for (;;) yard.loop.run_once(std::nullopt);
  }

  sys::TemporaryDirectory place_;
  pid_t yard_;
  pid_t guard_ = 0;
  pid_t keeper_ = 0;
  std::vector<std::int64_t> pids_;
};

TEST(Guard, LeavesNothingWhenTheYardIsKilled) {
  Family family(false);
  family.end_yard();
  EXPECT_TRUE(family.nobody_is_left());
}

TEST(Guard, LeavesNothingWhenTheKeeperIsKilled) {
  const Family family(true);
  ::kill(family.keeper(), SIGKILL);
  EXPECT_TRUE(family.nobody_is_left());
}

TEST(Guard, LeavesNothingWhenTheGuardIsKilled) {
  const Family family(true);
  ::kill(family.guard(), SIGKILL);
  EXPECT_TRUE(family.nobody_is_left());
}

TEST(Guard, LeavesNothingWhenTwoOfTheThreeAreKilledWhicheverIsFirst) {
  for (const bool yard_first : {true, false}) {
    for (const bool keeper_too : {true, false}) {
      Family family(true);
      const pid_t other = keeper_too ? family.keeper() : family.guard();
      if (yard_first) ::kill(family.yard(), SIGKILL);
      ::kill(other, SIGKILL);
      family.end_yard();
      EXPECT_TRUE(family.nobody_is_left()) << yard_first << keeper_too;
    }
  }
}

TEST(Guard, LeavesNothingWhenTheGroupOfTheYardIsKilled) {
  Family family(false);
  ::kill(-family.yard(), SIGKILL);
  EXPECT_TRUE(family.nobody_is_left());
}

TEST(Guard, EndsAKeeperThatIsStoppedWhenTheYardIsGone) {
  Family family(true, Duration(10));
  ::kill(family.keeper(), SIGSTOP);
  family.end_yard();
  EXPECT_TRUE(family.nobody_is_left());
}

TEST(Guard, IsInASessionOfItsOwnAndTellsNobodyWhatProgramItIs) {
  TestYard yard;
  yard.keeper.start(TestYard::key(0), yard.launch({"sleep", "1000"}));
  yard.wait_for_start();
  const std::int64_t guard = yard.keeper.guard_pid();
  sys::ProcessScan scan;
  EXPECT_EQ(scan.read(guard)->session, guard);
  EXPECT_EQ(scan.read(guard)->parent, ::getpid());
  EXPECT_EQ(scan.read(yard.keeper.pid())->parent, guard);
  const std::string place = fmt::format("/proc/{}/", guard);
  // The name is there once it has forked the keeper.
  EXPECT_TRUE(sys::eventually(
      [&] { return hardware::read_small_file(place + "comm") == std::string(kGuardName) + "\n"; }));
  EXPECT_TRUE(sys::eventually([&] {
    return hardware::read_small_file(place + "cmdline").starts_with(std::string(kGuardName) + '\0');
  }));
  EXPECT_THAT(hardware::read_small_file(place + "cmdline"),
              Not(AnyOf(HasSubstr("train"), HasSubstr("process_test"))));
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::kill(static_cast<pid_t>(guard), signal);
  EXPECT_EQ(yard.run(yard.launch({"true"}, 1)), model::End(model::ExitedWith{0}));
}

TEST(Guard, GoesWithTheKeeperAndSaysWhatKilledIt) {
  std::int64_t guard = 0;
  {
    TestYard yard;
    guard = yard.keeper.guard_pid();
    EXPECT_EQ(yard.run(yard.launch({"true"})), model::End(model::ExitedWith{0}));
  }
  EXPECT_FALSE(is_alive(guard));

  TestYard yard;
  ::kill(static_cast<pid_t>(yard.keeper.guard_pid()), SIGKILL);
  ASSERT_TRUE(yard.wait([&] { return !yard.news.empty(); }));
  EXPECT_EQ(std::get<KeeperGone>(yard.news.back()).why,
            fmt::format("the guard of the keeper (process {}) was killed by signal 9",
                        yard.keeper.guard_pid()));
  EXPECT_EQ(yard.news.size(), 1U);
}

TEST(Guard, TakesNoTaskForAFailedOneWhenItIsKilled) {
  TestYard yard;
  yard.keeper.start(TestYard::key(0), yard.launch({"sleep", "1000"}));
  yard.wait_for_start();
  ::kill(static_cast<pid_t>(yard.keeper.guard_pid()), SIGKILL);
  ASSERT_TRUE(yard.wait([&] { return std::holds_alternative<KeeperGone>(yard.news.back()); }));
  EXPECT_EQ(yard.news.size(), 2U) << "its start, and that the keeper is gone";
}

}  // namespace
}  // namespace trainyard::process

// The end of processes: by themselves, on request, and with everything they have started.
#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <variant>
#include <vector>

#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/time.h"
#include "model/event.h"
#include "model/launch.h"
#include "process/keeper.h"
#include "process/process_table.h"
#include "process/test_yard.h"
#include "sys/clock.h"
#include "sys/test_directory.h"
#include "sys/test_wait.h"

namespace trainyard::process {
namespace {

// Starts `sleep` in a session of its own, twice removed from the shell, and writes its pid to $1.
constexpr const char* kRunAway =
    "(setsid sh -c 'echo $$ > $0.new; mv $0.new $0; exec sleep 1000' $RUNAWAY &) ; ";

model::Launch with_run_away(TestYard& yard, const std::string& then) {
  model::Launch launch =
      yard.shell(std::string(kRunAway) + "while [ ! -e $RUNAWAY ]; do sleep 0.01; done; " + then);
  launch.environment.push_back("RUNAWAY=" + (yard.directory / "runaway"));
  return launch;
}

TEST(KeeperEnd, TellsTheExitCodeOrTheSignal) {
  TestYard yard;
  EXPECT_EQ(yard.run(yard.launch({"true"})), model::End(model::ExitedWith{0}));
  EXPECT_EQ(yard.run(yard.shell("exit 3")), model::End(model::ExitedWith{3}));
  EXPECT_EQ(yard.run(yard.shell("kill -SEGV $$")), model::End(model::KilledBy{.signal = SIGSEGV}));
  EXPECT_EQ(yard.run(yard.shell("kill -KILL $$")), model::End(model::KilledBy{.signal = SIGKILL}));
}

TEST(KeeperEnd, TellsWhatWasUsed) {
  TestYard yard;
  yard.keeper.start(TestYard::key(0), yard.launch({"/usr/bin/python3", "-c",
                                                   "import os,time\n"
                                                   "x=b'x'*100_000_000\n"
                                                   "p=os.fork()\n"
                                                   "while time.process_time()<0.3: pass\n"
                                                   "if p: os.wait()\n"}));
  const ProcessEnded ended = yard.wait_for_end();
  EXPECT_EQ(ended.end, model::End(model::ExitedWith{0}));
  EXPECT_GE(ended.usage.memory_peak, mb(100));
  EXPECT_LE(ended.usage.memory_peak, mb(400));
  EXPECT_EQ(ended.group_peak, Bytes{}) << "it has no group of its own";
  EXPECT_GE(ended.usage.cpu_time, Duration(590));
  EXPECT_LE(ended.usage.cpu_time, Duration(5000));
}

TEST(KeeperEnd, TellsWhatOfAPeakMayBeItsOwn) {
  // As large as the program that forks it: the process that becomes `true` takes over its mark.
  const std::string large(100'000'000, 'x');
  TestYard yard;
  ASSERT_EQ(large.back(), 'x');
  yard.keeper.start(TestYard::key(0), yard.launch({"true"}));
  const ProcessEnded ended = yard.wait_for_end();
  EXPECT_GE(ended.mark, mb(100));
  // The kernel counts in steps.
  EXPECT_LE(ended.usage.memory_peak, ended.mark + mb(5));
}

TEST(KeeperEnd, EndsWhatIsLeftOfTheGroup) {
  TestYard yard;
  EXPECT_EQ(yard.run(yard.shell("sleep 1000 & echo $! > pid; exit 4")),
            model::End(model::ExitedWith{4}));
  EXPECT_FALSE(is_alive(yard.wait_for_pid("pid")));
}

TEST(KeeperEnd, EndsAGrandchildThatHasRunAwayIntoASessionOfItsOwn) {
  TestYard yard;
  // Beside another task, of which it might be.
  yard.keeper.start(TestYard::key(1), yard.launch({"sleep", "1000"}, 1));
  yard.wait_for_start(1);
  EXPECT_EQ(yard.run(with_run_away(yard, "exit 5")), model::End(model::ExitedWith{5}));
  EXPECT_FALSE(is_alive(yard.wait_for_pid("runaway")));
}

TEST(KeeperEnd, EndsAFamilyThatHasRunAway) {
  TestYard yard;
  const model::Launch launch = yard.shell(
      "(setsid sh -c '(setsid sleep 1001 & echo $! > child); echo $$ > parent; sleep 1002' &);"
      "while [ ! -s parent ] || [ ! -s child ]; do sleep 0.01; done");
  EXPECT_EQ(yard.run(launch), model::End(model::ExitedWith{0}));
  EXPECT_FALSE(is_alive(yard.wait_for_pid("parent")));
  EXPECT_FALSE(is_alive(yard.wait_for_pid("child")));
}

TEST(KeeperEnd, EndsOneThatHidesWhoseItIs) {
  TestYard yard;
  model::Launch launch = yard.shell(
      "(env -i setsid sh -c 'echo $$ > hidden.new; mv hidden.new hidden; exec sleep 1000' &);"
      "while [ ! -e hidden ]; do sleep 0.01; done");
  EXPECT_EQ(yard.run(launch), model::End(model::ExitedWith{0}));
  EXPECT_FALSE(is_alive(yard.wait_for_pid("hidden")));
}

TEST(KeeperEnd, LeavesTheDaemonOfARunningTaskAlone) {
  TestYard yard;
  yard.keeper.start(TestYard::key(0), with_run_away(yard, "touch ready; sleep 1000"));
  yard.wait_for_start();
  const std::int64_t daemon = yard.wait_for_pid("runaway");
  // Another task comes and goes, with something left over that makes the keeper look around.
  yard.keeper.start(TestYard::key(1), yard.shell("sleep 1000 & exit 0", 1));
  EXPECT_EQ(yard.wait_for_end(1).end, model::End(model::ExitedWith{0}));
  EXPECT_TRUE(is_alive(daemon));
  EXPECT_FALSE(yard.ended(0));

  yard.keeper.signal(TestYard::key(0), SIGKILL);
  EXPECT_EQ(yard.wait_for_end(0).end, model::End(model::KilledBy{.signal = SIGKILL}));
  EXPECT_FALSE(is_alive(daemon));
}

TEST(KeeperEnd, LeavesNoZombieWhileATaskRuns) {
  TestYard yard;
  yard.keeper.start(TestYard::key(0), yard.shell("(sh -c 'echo $$ > short' &); sleep 1000"));
  yard.wait_for_start();
  const std::int64_t pid = yard.wait_for_pid("short");
  EXPECT_TRUE(
      sys::eventually([&] { return !std::filesystem::exists("/proc/" + std::to_string(pid)); }));
}

TEST(KeeperEnd, StopsAProcessWithTermAndThenWithKill) {
  TestYard yard;
  yard.keeper.start(TestYard::key(0), yard.launch({"sleep", "1000"}));
  yard.wait_for_start();
  yard.keeper.signal(TestYard::key(0), SIGTERM);
  EXPECT_EQ(yard.wait_for_end(0).end, model::End(model::KilledBy{.signal = SIGTERM}));

  yard.keeper.start(
      TestYard::key(1),
      yard.shell("trap 'echo heard' TERM; echo $$ > ready; while :; do sleep 0.01; done", 1));
  static_cast<void>(yard.wait_for_pid("ready"));
  yard.keeper.signal(TestYard::key(1), SIGTERM);
  EXPECT_TRUE(
      yard.wait([&] { return sys::content_of(yard.directory / "task1/stdout.log") == "heard\n"; }));
  EXPECT_FALSE(yard.ended(1));
  yard.keeper.signal(TestYard::key(1), SIGKILL);
  EXPECT_EQ(yard.wait_for_end(1).end, model::End(model::KilledBy{.signal = SIGKILL}));
}

TEST(KeeperEnd, StopsThoseInOtherSessionsToo) {
  TestYard yard;
  // The shell waits for a child in another session, which exits when it gets TERM.
  const model::Launch launch = yard.shell(
      "trap : TERM; setsid sh -c 'trap \"echo heard; exit 7\" TERM; echo $$ > ready; "
      "while :; do sleep 0.01; done'; exit $?");
  yard.keeper.start(TestYard::key(0), launch);
  static_cast<void>(yard.wait_for_pid("ready"));
  yard.keeper.signal(TestYard::key(0), SIGTERM);
  EXPECT_EQ(yard.wait_for_end().end, model::End(model::ExitedWith{7}));
  EXPECT_EQ(sys::content_of(launch.stdout_path), "heard\n");
}

TEST(KeeperEnd, DoesNotMindAStopThatComesTooLateOrForNobody) {
  TestYard yard;
  yard.keeper.signal(TestYard::key(9), SIGKILL);
  EXPECT_EQ(yard.run(yard.launch({"true"})), model::End(model::ExitedWith{0}));
  // Sent together with the start of another under the same name, which it does not mean.
  yard.keeper.signal(TestYard::key(0), SIGKILL);
  EXPECT_EQ(yard.run(yard.launch({"sleep", "0.05"})), model::End(model::ExitedWith{0}));
  EXPECT_EQ(yard.news.size(), 2U);
}

TEST(KeeperEnd, EndsEverythingWhenTheLeaseIsOverThoughTheYardIsThere) {
  TestYard yard;
  yard.keeper.let_run_until(sys::boot_clock() + Duration(60'000));
  yard.keeper.start(TestYard::key(0), with_run_away(yard, "exec sleep 1000"));
  const std::int64_t pid = yard.wait_for_start();
  const std::int64_t runaway = yard.wait_for_pid("runaway");
  yard.keeper.let_run_until(sys::boot_clock());
  EXPECT_TRUE(yard.wait(
      [&] { return !yard.news.empty() && std::holds_alternative<KeeperGone>(yard.news.back()); }));
  EXPECT_FALSE(is_alive(pid));
  EXPECT_FALSE(is_alive(runaway));
}

TEST(KeeperEnd, LetsTasksRunWhereTheLeaseIsRenewedInTime) {
  TestYard yard;
  yard.keeper.let_run_until(sys::boot_clock() + Duration(200));
  yard.keeper.let_run_until(sys::boot_clock() + Duration(60'000));
  EXPECT_EQ(yard.run(yard.launch({"sleep", "0.4"})), model::End(model::ExitedWith{0}));
}

TEST(ProcessesLeft, AreThoseThatAreEnded) {
  TestYard yard;
  const std::string mark = "TRAINYARD_TEST_RUN=" + yard.directory.path();
  std::vector<std::int64_t> pids;
  for (const std::uint32_t number : {0U, 1U, 2U}) {
    model::Launch launch = yard.launch({"sleep", "1000"}, number);
    launch.environment.push_back(number < 2 ? mark : mark + "-and-more");
    yard.keeper.start(TestYard::key(number), launch);
    pids.push_back(yard.wait_for_start(number));
  }
  pids.pop_back();
  std::ranges::sort(pids);
  const Leftovers left{.mark = mark, .user = ::getuid()};
  // The forked process has the environment of its keeper until it executes its program.
  EXPECT_TRUE(sys::eventually([&] { return processes_left(left) == pids; }));
  EXPECT_EQ(processes_left({.mark = mark, .user = ::getuid() + 1}), std::vector<std::int64_t>());
  EXPECT_EQ(end_processes(left, Duration(50)).value(), 2);
  EXPECT_EQ(processes_left(left), std::vector<std::int64_t>());
}

TEST(EndProcesses, EndsThoseThatADeadRunLeftBehind) {
  TestYard yard;
  const std::string mark = "TRAINYARD_TEST_RUN=" + yard.directory.path();
  model::Launch marked =
      yard.shell("trap '' TERM; echo $$ > stubborn; while :; do sleep 0.01; done");
  marked.environment.push_back(mark);
  model::Launch other = yard.launch({"sleep", "1000"}, 1);
  other.environment.push_back(mark + "-and-more");
  yard.keeper.start(TestYard::key(0), marked);
  yard.keeper.start(TestYard::key(1), other);
  static_cast<void>(yard.wait_for_pid("stubborn"));
  yard.wait_for_start(1);
  const Leftovers left{.mark = mark, .user = ::getuid()};
  EXPECT_GE(end_processes(left, Duration(50)).value(), 1);
  EXPECT_EQ(yard.wait_for_end(0).end, model::End(model::KilledBy{.signal = SIGKILL}));
  EXPECT_FALSE(yard.ended(1));
  EXPECT_EQ(end_processes(left, Duration(50)).value(), 0);
}

TEST(EndProcesses, SparesThoseThatHaveAnotherMarkAsWell) {
  TestYard yard;
  const std::string mark = "TRAINYARD_TEST_RUN=" + yard.directory.path();
  model::Launch spared = yard.launch({"sleep", "1000"});
  spared.environment = {mark, "TRAINYARD_TEST_AGENT=2"};
  yard.keeper.start(TestYard::key(0), spared);
  yard.wait_for_start(0);
  Leftovers left{.mark = mark, .user = ::getuid(), .but_for = {"A=1", "TRAINYARD_TEST_AGENT=2"}};
  EXPECT_EQ(end_processes(left, Duration(50)).value(), 0);
  EXPECT_FALSE(yard.ended(0));
  left.but_for = {"TRAINYARD_TEST_AGENT=1"};
  EXPECT_EQ(end_processes(left, Duration(50)).value(), 1);
}

TEST(EndProcesses, SparesThoseOfAnotherUserThatHaveTheMark) {
  TestYard yard;
  const std::string mark = "TRAINYARD_TEST_RUN=" + yard.directory.path();
  model::Launch marked = yard.launch({"sleep", "1000"});
  marked.environment.push_back(mark);
  yard.keeper.start(TestYard::key(0), marked);
  yard.wait_for_start(0);
  EXPECT_EQ(end_processes({.mark = mark, .user = ::getuid() + 1}, Duration(50)).value(), 0);
  EXPECT_FALSE(yard.ended(0));
  EXPECT_EQ(end_processes({.mark = mark, .user = ::getuid()}, Duration(50)).value(), 1);
}

TEST(EndProcesses, AreThoseOfTheOwnerOfTheRunDirectoryForRoot) {
  // Only root can give the directory away.
  const uid_t owner = ::geteuid() == 0 ? 23'001 : ::geteuid();
  const sys::TemporaryDirectory run;
  ASSERT_EQ(::chown(run.path().c_str(), owner, static_cast<gid_t>(-1)), 0);
  EXPECT_EQ(user_of_run(run.path()), owner);
}

}  // namespace
}  // namespace trainyard::process

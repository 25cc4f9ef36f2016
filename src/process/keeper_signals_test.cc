// A signal goes to the program of a task, which may need its helpers until it has exited.
#include <algorithm>
#include <csignal>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/time.h"
#include "model/event.h"
#include "model/launch.h"
#include "process/exit_board.h"
#include "process/keeper.h"
#include "process/keeper_message.h"
#include "process/test_attempts.h"
#include "process/test_yard.h"
#include "sys/files.h"
#include "sys/test_directory.h"
#include "sys/test_wait.h"

namespace trainyard::process {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

/// Has two helpers, which inherit its handler, and exits with 7 when both have answered it there.
constexpr const char* kProgram = R"(
import os, signal, sys

def heard(number, frame):
    with open("heard", "a") as file:
        file.write("program\n" if os.getpid() == program else "helper\n")
    if os.getpid() != program:
        os._exit(1)
    for ask, answer in helpers:
        os.write(ask, b"?")
        if os.read(answer, 1) != b"!":
            os._exit(9)
    os._exit(7)

program = os.getpid()
signal.signal(int(sys.argv[1]), heard)
helpers = []
for _ in (0, 1):
    asked, ask = os.pipe()
    answer, answered = os.pipe()
    if os.fork() == 0:
        os.close(answer)
        while os.read(asked, 1):
            os.write(answered, b"!")
        os._exit(0)
    os.close(answered)
    helpers.append((ask, answer))
with open("ready", "w") as file:
    file.write("%d\n" % program)
while True:
    signal.pause()
)";

/// Starts two workers that handle each signal, handles TERM itself, and ends with them.
constexpr const char* kLauncher = R"(
import os, signal, sys

def heard(number, frame):
    with open("heard", "a") as file:
        file.write("%s %d\n" % (name, number))
    os._exit(3)

name = "launcher"
signal.signal(signal.SIGTERM, heard)
for number in (0, 1):
    if os.fork() == 0:
        name = "worker"
        signal.signal(signal.SIGUSR1, heard)
        with open("ready.%d" % number, "w") as file:
            file.write("%d\n" % os.getpid())
        while True:
            signal.pause()
for _ in (0, 1):
    os.wait()
)";

/// Its child handles TERM, and executes a program then that does not know of it.
constexpr const char* kForkedChild = R"(
import os, signal

def heard(number, frame):
    os.execv("/bin/sleep", ["sleep", "1000"])

if os.fork() == 0:
    signal.signal(signal.SIGTERM, heard)
    with open("ready", "w") as file:
        file.write("%d\n" % os.getpid())
    while True:
        signal.pause()
os.wait()
)";

/// Longer than any test: what comes after half of it would come too late.
constexpr Duration kLongGrace{1'000'000};

model::Launch python(const TestYard& yard, const char* text, std::vector<std::string> arguments) {
  EXPECT_TRUE(sys::write_file_atomically(yard.directory / "program.py", text));
  std::vector<std::string> words{"/usr/bin/python3", "program.py"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return yard.launch(std::move(words));
}

/// Sends the signal to a program that is started so, and returns which of its processes got it
/// first. Its helpers may get TERM, too, once it has exited.
std::string first_to_hear_in(const std::vector<std::string>& command, int signal) {
  TestYard yard;
  EXPECT_TRUE(sys::write_file_atomically(yard.directory / "program.py", kProgram));
  yard.keeper.start(TestYard::key(0), yard.launch(command));
  yard.wait_for_start();
  yard.wait_for_pid("ready");
  yard.keeper.signal(TestYard::key(0), signal, kLongGrace);
  EXPECT_EQ(yard.wait_for_end().end, model::End(model::ExitedWith{7}))
      << "its helpers are there while it saves";
  const std::string heard = sys::content_of(yard.directory / "heard");
  return heard.substr(0, heard.find('\n'));
}

TEST(KeeperSignals, ReachTheProgramAndNotHelpersThatInheritedItsHandler) {
  EXPECT_EQ(first_to_hear_in({"/usr/bin/python3", "program.py", "15"}, SIGTERM), "program");
  EXPECT_EQ(first_to_hear_in({"/usr/bin/python3", "program.py", "10"}, SIGUSR1), "program");
}

TEST(KeeperSignals, ReachTheProgramInAScript) {
  const std::string script = "/usr/bin/python3 program.py 15; exit $?";
  EXPECT_EQ(first_to_hear_in({"/bin/sh", "-c", script}, SIGTERM), "program");
  EXPECT_EQ(first_to_hear_in({"/bin/bash", "-c", "trap 'echo bye' EXIT; " + script}, SIGTERM),
            "program");
  EXPECT_EQ(first_to_hear_in({"/bin/bash", "-c", "/usr/bin/python3 program.py 2; exit $?"}, SIGINT),
            "program");
}

TEST(KeeperSignals, ReachALauncherAloneOrEachOfItsWorkers) {
  for (const bool to_launcher : {true, false}) {
    TestYard yard;
    yard.keeper.start(TestYard::key(0), python(yard, kLauncher, {}));
    yard.wait_for_start();
    yard.wait_for_pid("ready.0");
    yard.wait_for_pid("ready.1");
    yard.keeper.signal(TestYard::key(0), to_launcher ? SIGTERM : SIGUSR1, kLongGrace);
    EXPECT_EQ(yard.wait_for_end().end, model::End(model::ExitedWith{to_launcher ? 3 : 0}));
    EXPECT_THAT(sys::content_of(yard.directory / "heard"),
                StartsWith(to_launcher ? "launcher 15\n" : "worker 10\nworker 10\n"));
  }
}

TEST(KeeperSignals, ReachTheOthersWhenTheProgramHasExited) {
  TestYard yard;
  EXPECT_TRUE(sys::write_file_atomically(yard.directory / "program.py", kProgram));
  yard.keeper.start(TestYard::key(0),
                    yard.shell("/usr/bin/python3 program.py 15; exec sleep 1000"));
  yard.wait_for_start();
  yard.wait_for_pid("ready");
  yard.keeper.signal(TestYard::key(0), SIGTERM, kLongGrace);
  EXPECT_EQ(yard.wait_for_end().end, model::End(model::KilledBy{.signal = SIGTERM}));
  // Its helpers, too, unless they have seen its end before.
  EXPECT_THAT(sys::content_of(yard.directory / "heard"), StartsWith("program\n"));
}

TEST(KeeperSignals, ReachTheOthersWhenHalfOfTheGraceHasPassed) {
  TestYard yard;
  // The shell runs its trap when the process that it waits for has exited.
  yard.keeper.start(
      TestYard::key(0),
      yard.shell("trap 'exit 5' TERM; sh -c 'echo $$ > ready; exec sleep 1000'; exit 1"));
  yard.wait_for_start();
  yard.wait_for_pid("ready");
  yard.keeper.signal(TestYard::key(0), SIGTERM, Duration(200));
  EXPECT_EQ(yard.wait_for_end().end, model::End(model::ExitedWith{5}));
}

TEST(KeeperSignals, ReachAllProcessesAtOnceWhereTheLaunchSaysSo) {
  TestYard yard;
  model::Launch launch =
      yard.shell("trap 'exit 5' TERM; sh -c 'echo $$ > ready; exec sleep 1000'; exit 1");
  launch.term_to_all = true;
  yard.keeper.start(TestYard::key(0), launch);
  yard.wait_for_start();
  yard.wait_for_pid("ready");
  yard.keeper.signal(TestYard::key(0), SIGTERM, kLongGrace);
  EXPECT_EQ(yard.wait_for_end().end, model::End(model::ExitedWith{5}));
}

TEST(KeeperSignals, ReachTheProgramThatAProcessExecutesAfterItGotThem) {
  TestYard yard;
  yard.keeper.start(TestYard::key(0), python(yard, kForkedChild, {}));
  yard.wait_for_start();
  yard.wait_for_pid("ready");
  yard.keeper.signal(TestYard::key(0), SIGTERM, kLongGrace);
  EXPECT_EQ(yard.wait_for_end().end, model::End(model::KilledBy{.signal = SIGTERM}));
}

TEST(KeeperSignals, ThatNoProcessHandlesAreNotSentAndNotedUnlessTheyAreTerm) {
  TestYard yard;
  const model::Launch launch = yard.launch({"sleep", "1000"});
  yard.keeper.start(TestYard::key(0), launch);
  yard.wait_for_start();
  yard.keeper.signal(TestYard::key(0), SIGUSR1);
  const auto note = [&yard]() -> const KeeperNote* {
    const auto found = std::ranges::find_if(
        yard.news, [](const KeeperNews& it) { return std::holds_alternative<KeeperNote>(it); });
    return found == yard.news.end() ? nullptr : std::get_if<KeeperNote>(&*found);
  };
  ASSERT_TRUE(yard.wait([&] { return note() != nullptr; }));
  EXPECT_EQ(note()->text, "SIGUSR1 was not sent to the task in '" + launch.task_directory +
                              "': no process of it handles it");
  yard.keeper.signal(TestYard::key(0), SIGTERM, kLongGrace);
  EXPECT_EQ(yard.wait_for_end().end, model::End(model::KilledBy{.signal = SIGTERM}));
}

/// A task that exits when let_exit() is called.
class WaitingTask : public KeeperAttemptsTest {
 protected:
  [[nodiscard]] model::Launch script(const char* text) const {
    return launch_of({"sh", "-c", text});
  }
  Number start_task(model::Launch launch) {
    EXPECT_EQ(::mkfifo((place_ / "go").c_str(), 0600), 0);
    return start_launch(1, std::move(launch));
  }
  Number start_task() { return start_task(script("read line < go; exit 3")); }
  void let_exit() const { std::ofstream(place_ / "go") << "\n"; }
  void send(int signal) {
    const SignalMessage message{.key = TestYard::key(1), .signal = signal};
    attempts_.signal(std::span(&message, 1));
  }
  /// Returns the pid of the task.
  pid_t wait_for_start(Number process) {
    std::optional<ProcessStarted> started;
    EXPECT_TRUE(sys::eventually([&] {
      started = attempts_.look_at_start(process, Clock::now());
      return started.has_value();
    }));
    return static_cast<pid_t>(started.value_or(ProcessStarted{}).pid);
  }
  /// Makes the task exit, by this signal if there is one, and traces it so that it is exiting until
  /// the tracer detaches. Returns its pid; 0 if this process may not trace others: then the task has
  /// exited and is reaped.
  pid_t held_while_it_exits(Number process, int signal = 0) {
    const pid_t pid = wait_for_start(process);
    const bool traces = ::ptrace(PTRACE_SEIZE, pid, 0L, long{PTRACE_O_TRACEEXIT}) == 0;
    if (traces && signal != 0) {
      ::kill(pid, signal);
    } else {
      let_exit();
    }
    if (!traces) {
      EXPECT_TRUE(wait_for_exit(process));
      reap(process);
      return 0;
    }
    int status = 0;
    EXPECT_EQ(::waitpid(pid, &status, __WALL), pid);
    EXPECT_EQ(status >> 8, SIGTRAP | (PTRACE_EVENT_EXIT << 8));
    return pid;
  }
  static void release(pid_t pid) { ::ptrace(PTRACE_DETACH, pid, 0L, 0L); }
  ProcessEnded end_of(Number process) {
    EXPECT_TRUE(wait_for_exit(process));
    attempts_.look_at_start(process, Clock::now());
    const auto over = over_after_exit(process);
    EXPECT_EQ(over.size(), 1U);
    return over.empty() ? ProcessEnded{} : over.front().ended;
  }
  /// The exits that the guard would report.
  std::vector<UnreportedExit> exits_on_board() {
    std::vector<UnreportedExit> exits;
    for (const FoundExit& found : board_.find_ended({})) exits.push_back(found.exit);
    return exits;
  }
  void expect_own_exit(Number process) {
    const ProcessEnded ended = end_of(process);
    EXPECT_EQ(ended.end, model::End(model::ExitedWith{3}));
    EXPECT_FALSE(ended.told_to_end);
    EXPECT_THAT(exits_on_board(), ElementsAre(UnreportedExit{.key = TestYard::key(1),
                                                             .exit = model::ExitedWith{3},
                                                             .was_signalled = false}));
  }
};

TEST_F(WaitingTask, IsNotToldToEndByATermThatComesWhileItExits) {
  const Number process = start_task();
  const pid_t pid = held_while_it_exits(process);
  if (pid == 0) GTEST_SKIP() << "may not trace here";
  send(SIGTERM);
  release(pid);
  expect_own_exit(process);
}

TEST_F(WaitingTask, IsNotToldToEndByAKillAfterATermWhileItExits) {
  const Number process = start_task();
  const pid_t pid = held_while_it_exits(process);
  if (pid == 0) GTEST_SKIP() << "may not trace here";
  send(SIGTERM);
  send(SIGKILL);
  release(pid);
  expect_own_exit(process);
}

TEST_F(WaitingTask, IsNotToldToEndByTheEndOfItsYardThatComesWhileItExits) {
  const Number process = start_task();
  const pid_t pid = held_while_it_exits(process);
  if (pid == 0) GTEST_SKIP() << "may not trace here";
  attempts_.signal_everything(SIGTERM, kLongGrace, 0);
  release(pid);
  expect_own_exit(process);
}

TEST_F(WaitingTask, IsNotToldToEndByTheKillAtTheEndOfItsYardThatComesWhileItExits) {
  const Number process = start_task();
  const pid_t pid = held_while_it_exits(process);
  if (pid == 0) GTEST_SKIP() << "may not trace here";
  attempts_.signal_everything(SIGKILL, {}, 0);
  release(pid);
  expect_own_exit(process);
}

TEST_F(WaitingTask, IsNotToldToEndByATermThatIsSentWhenItHasExited) {
  const Number process = start_task();
  // The keeper has not seen yet that the program runs, and keeps the signal for it.
  send(SIGTERM);
  let_exit();
  expect_own_exit(process);
}

TEST_F(WaitingTask, IsNotToldToEndByATermIfItExitsWithTheCodeOfAKill) {
  const Number process = start_task(script("read line < go; exit 137"));
  const pid_t pid = held_while_it_exits(process);
  if (pid == 0) GTEST_SKIP() << "may not trace here";
  send(SIGTERM);
  release(pid);
  // The end itself depends on whether the kernel has killed anything for want of memory.
  EXPECT_FALSE(end_of(process).told_to_end);
}

TEST_F(WaitingTask, IsNotToldToEndByATermIfAnotherProcessKillsIt) {
  const Number process = start_task();
  const pid_t pid = held_while_it_exits(process, SIGKILL);
  if (pid == 0) GTEST_SKIP() << "may not trace here";
  send(SIGTERM);
  release(pid);
  EXPECT_FALSE(end_of(process).told_to_end);
}

TEST_F(WaitingTask, IsToldToEndByTheTermOrKillThatKillsIt) {
  for (const int signal : {SIGTERM, SIGKILL}) {
    const Number process = start(1, {"sleep", "1000"});
    wait_for_start(process);
    send(signal);
    const ProcessEnded ended = end_of(process);
    EXPECT_EQ(ended.end, model::End(model::KilledBy{.signal = signal}));
    EXPECT_TRUE(ended.told_to_end);
    EXPECT_THAT(exits_on_board(),
                ElementsAre(UnreportedExit{.key = TestYard::key(1),
                                           .exit = model::KilledBy{.signal = signal},
                                           .was_signalled = true}));
    board_.leave(TestYard::key(1));
  }
}

TEST_F(WaitingTask, IsToldToEndByATermIfAnotherProcessHasReapedIt) {
  const Number process = start(1, {"sleep", "1000"});
  const pid_t pid = wait_for_start(process);
  send(SIGTERM);
  ASSERT_EQ(::waitpid(pid, nullptr, 0), pid);
  const ProcessEnded ended = end_of(process);
  EXPECT_TRUE(std::holds_alternative<model::Vanished>(ended.end));
  EXPECT_TRUE(ended.told_to_end);
}

TEST_F(WaitingTask, IsToldToEndByATermToAllThatItHandlesAlsoWhileItExits) {
  model::Launch launch = script("trap : TERM; read line < go; exit 3");
  launch.term_to_all = true;
  const Number process = start_task(std::move(launch));
  const pid_t pid = held_while_it_exits(process);
  if (pid == 0) GTEST_SKIP() << "may not trace here";
  send(SIGTERM);
  release(pid);
  const ProcessEnded ended = end_of(process);
  EXPECT_EQ(ended.end, model::End(model::ExitedWith{3}));
  EXPECT_TRUE(ended.told_to_end);
}

TEST_F(WaitingTask, IsToldToEndByATermThatComesWhileARankOfItExits) {
  model::Launch launch = script("read line < go; exit 3");
  launch.ranks = 1;
  const Number process = start_task(std::move(launch));
  const pid_t pid = held_while_it_exits(process);
  if (pid == 0) GTEST_SKIP() << "may not trace here";
  send(SIGTERM);
  release(pid);
  const ProcessEnded ended = end_of(process);
  EXPECT_EQ(ended.end, model::End(model::ExitedWith{3}));
  EXPECT_TRUE(ended.told_to_end);
}

}  // namespace
}  // namespace trainyard::process

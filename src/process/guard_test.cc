// Nothing of a yard is left, whichever of yard, guard and keeper is killed; and another keeper
// takes the place of one that died.
#include "process/guard.h"

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <variant>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/check.h"
#include "hardware/cgroup.h"
#include "model/event.h"
#include "model/launch.h"
#include "process/guard_line.h"
#include "process/guard_words.h"
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
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// The tasks: a command, one that changes session twice and hides its environment, one with
/// children of its own, one that starts hidden processes while it is ended; and an optional one
/// that does not exit on TERM.
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
    // A guard that is still there ends what it is to end, also processes that are not in pids_.
    static_cast<void>(nobody_is_left());
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

  /// Waits for the end of all but the yard, and those. Tasks have an hour after TERM, so that
  /// one which does not end at TERM is not seen to end.
  [[nodiscard]] bool nobody_is_left_but(const std::vector<std::int64_t>& those) const {
    return sys::eventually([&] {
      return std::ranges::none_of(pids_, [&](std::int64_t pid) {
        return is_alive(pid) && std::ranges::find(those, pid) == those.end();
      });
    });
  }
  [[nodiscard]] bool nobody_is_left() const { return nobody_is_left_but({}); }

 private:
  static constexpr Duration kGrace{3'600'000};

  void tell(const std::string& name, std::int64_t pid) const {
    check(sys::replace_file(place_ / name, fmt::format("{}\n", pid)).has_value(),
          "a place to write to");
  }

  [[noreturn]] void be_a_yard(bool stubborn, Duration grace) const {
    ::setpgid(0, 0);
    ::setenv("TMPDIR", place_.path().c_str(), 1);  // So that what it leaves goes with ours.
    TestYard yard({.stop_grace = grace, .unguarded_grace = Duration(50)});
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

bool is_gone(const TestYard& yard) {
  return !yard.news.empty() && std::holds_alternative<KeeperGone>(yard.news.back());
}

TEST(Guard, LeavesNothingWhenTheYardIsKilled) {
  Family family(false);
  family.end_yard();
  EXPECT_TRUE(family.nobody_is_left());
}

TEST(Guard, LeavesNothingOfAKeeperThatIsKilled) {
  const Family family(true);
  ::kill(family.keeper(), SIGKILL);
  EXPECT_TRUE(family.nobody_is_left_but({family.guard()}));
  EXPECT_TRUE(is_alive(family.guard()));
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

TEST(Guard, LeavesNoTaskWhenItIsKilledWithTheKeeper) {
  TestYard yard;
  yard.keeper.start(TestYard::key(0), yard.shell("trap '' TERM; while :; do sleep 0.01; done"));
  const std::int64_t task = yard.wait_for_start();
  // It can end nothing itself.
  ::kill(static_cast<pid_t>(yard.keeper.pid()), SIGSTOP);
  ::kill(static_cast<pid_t>(yard.keeper.guard_pid()), SIGKILL);
  ::kill(static_cast<pid_t>(yard.keeper.pid()), SIGKILL);
  EXPECT_TRUE(sys::eventually([task] { return !is_alive(task); }));
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
  ASSERT_TRUE(yard.wait([&] { return is_gone(yard); }));
  EXPECT_EQ(std::get<KeeperGone>(yard.news.back()).why,
            fmt::format("the guard of the keeper (process {}) was killed by signal 9",
                        yard.keeper.guard_pid()));
  EXPECT_LE(yard.news.size(), 2U) << "that its keeper left may have been heard before";
}

TEST(Guard, TakesNoTaskForAFailedOneWhenItIsKilled) {
  TestYard yard;
  yard.keeper.start(TestYard::key(0), yard.launch({"sleep", "1000"}));
  yard.wait_for_start();
  ::kill(static_cast<pid_t>(yard.keeper.guard_pid()), SIGKILL);
  ASSERT_TRUE(yard.wait([&] { return is_gone(yard); }));
  EXPECT_FALSE(yard.ended(0));
}

TEST(Guard, IsReportedGoneOnceItsKeeperHasEndedTheTasks) {
  TestYard yard;
  yard.keeper.start(TestYard::key(0), yard.shell(kStubborn));
  const std::int64_t task = yard.wait_for_start();
  yard.wait_for_pid("stubborn");
  const std::int64_t keeper = yard.keeper.pid();
  ::kill(static_cast<pid_t>(yard.keeper.guard_pid()), SIGKILL);
  ASSERT_TRUE(yard.wait([&] { return is_gone(yard); }));
  EXPECT_TRUE(std::holds_alternative<KeeperDied>(yard.news.at(yard.news.size() - 2)));
  EXPECT_FALSE(is_alive(keeper));
  EXPECT_FALSE(is_alive(task));
}

TEST(Guard, IsReportedGoneAlsoIfItsKeeperIsStopped) {
  TestYard yard;
  // A keeper that has started nothing yet may still hold the guard's end of its line.
  EXPECT_EQ(yard.run(yard.launch({"true"})), model::End(model::ExitedWith{0}));
  ::kill(static_cast<pid_t>(yard.keeper.pid()), SIGSTOP);
  ::kill(static_cast<pid_t>(yard.keeper.guard_pid()), SIGKILL);
  EXPECT_TRUE(yard.wait([&] { return is_gone(yard); }));
}

/// Kills the keeper that there is, and waits until another one has taken its place.
KeeperReplaced replaced(TestYard& yard) {
  const std::int64_t before = yard.keeper.pid();
  yard.news.clear();
  ::kill(static_cast<pid_t>(before), SIGKILL);
  EXPECT_TRUE(yard.wait([&] {
    return !yard.news.empty() && std::holds_alternative<KeeperReplaced>(yard.news.back());
  }));
  EXPECT_TRUE(std::holds_alternative<KeeperDied>(yard.news.front()));
  EXPECT_EQ(yard.news.size(), 2U);
  const KeeperReplaced told = std::get<KeeperReplaced>(yard.news.back());
  EXPECT_EQ(told.why, fmt::format("the keeper (process {}) was killed by signal 9", before));
  EXPECT_EQ(told.pid, yard.keeper.pid());
  EXPECT_NE(told.pid, before);
  return told;
}

TEST(Guard, ForksAnotherKeeperInThePlaceOfOneThatDied) {
  TestYard yard;
  for (int i = 0; i < 3; ++i) {
    yard.news.clear();
    yard.keeper.start(TestYard::key(0), yard.shell("sleep 1000 & echo $! > child; wait"));
    const std::int64_t task = yard.wait_for_start();
    const std::int64_t child = yard.wait_for_pid("child");
    const KeeperReplaced keeper = replaced(yard);
    // All processes of the keeper before are gone when the next is reported.
    EXPECT_FALSE(is_alive(task));
    EXPECT_FALSE(is_alive(child));
    EXPECT_EQ(sys::ProcessScan().read(keeper.pid)->parent, yard.keeper.guard_pid());
    EXPECT_TRUE(sys::eventually([&] {
      return hardware::read_small_file(fmt::format("/proc/{}/comm", keeper.pid)) ==
             "trainyard-keep\n";
    }));
    std::filesystem::remove(yard.directory / "child");
    EXPECT_EQ(yard.run(yard.shell("exit 4", 1)), model::End(model::ExitedWith{4}));
  }
}

TEST(Guard, KeepsTheCommandLineForTheKeepersAlone) {
  TestYard yard;
  const std::string ours = hardware::read_small_file("/proc/self/cmdline");
  const auto of_keeper = [&] {
    return hardware::read_small_file(fmt::format("/proc/{}/cmdline", yard.keeper.pid()));
  };
  EXPECT_TRUE(sys::eventually([&] { return of_keeper() == ours; }));
  replaced(yard);
  EXPECT_TRUE(sys::eventually([&] { return of_keeper() == ours; }));
}

TEST(Guard, HandsOnWhatIsAskedForWhileThereIsNoKeeper) {
  TestYard yard;
  EXPECT_EQ(yard.run(yard.launch({"true"})), model::End(model::ExitedWith{0}));
  // It is stopped, so that the yard learns of the death long before it learns of the next one.
  const auto guard = static_cast<pid_t>(yard.keeper.guard_pid());
  ::kill(guard, SIGSTOP);
  yard.news.clear();
  ::kill(static_cast<pid_t>(yard.keeper.pid()), SIGKILL);
  ASSERT_TRUE(yard.wait([&] { return !yard.news.empty(); }));
  ASSERT_TRUE(std::holds_alternative<KeeperDied>(yard.news.front()));
  yard.keeper.start(TestYard::key(3), yard.shell("exit 3", 3));
  yard.keeper.start(TestYard::key(4), yard.launch({"sleep", "1000"}, 4));
  yard.keeper.signal(TestYard::key(4), SIGKILL);
  // The guard continues it when it has been silent for a second.
  EXPECT_EQ(yard.wait_for_end(3).end, model::End(model::ExitedWith{3}));
  EXPECT_EQ(yard.wait_for_end(4).end, model::End(model::KilledBy{.signal = SIGKILL}));
}

TEST(Guard, GivesUpWhenKeepersDieAtOnceOneAfterTheOther) {
  TestYard yard({.stop_grace = Duration(5000), .replacements_max = 2});
  for (int i = 0; i < 2; ++i) replaced(yard);
  const std::int64_t last = yard.keeper.pid();
  ::kill(static_cast<pid_t>(last), SIGKILL);
  ASSERT_TRUE(yard.wait([&] { return is_gone(yard); }));
  EXPECT_EQ(std::get<KeeperGone>(yard.news.back()).why,
            fmt::format("the keeper (process {}) was killed by signal 9; 3 in a row have ended at "
                        "once",
                        last));
}

TEST(Guard, CountsAnewWhenAKeeperHasLivedForAWhile) {
  // Ten looks are a while.
  TestYard yard(
      {.stop_grace = Duration(5000), .replacements_max = 1, .guard_looks_every = Duration(1)});
  for (int i = 0; i < 5; ++i) {
    const Duration settled = sys::EventLoop::now() + Duration(11);
    while (sys::EventLoop::now() < settled) yard.loop.run_once(Duration(5));
    replaced(yard);
  }
}

TEST(Guard, ForksNoOtherWhenTheKeeperIsKilledOnPurpose) {
  TestYard yard;
  yard.keeper.start(TestYard::key(0), yard.shell("trap '' TERM; while :; do sleep 0.01; done"));
  const std::int64_t task = yard.wait_for_start();
  const std::int64_t keeper = yard.keeper.pid();
  yard.keeper.kill();
  ASSERT_TRUE(yard.wait([&] { return is_gone(yard); }));
  EXPECT_EQ(std::get<KeeperGone>(yard.news.back()).why,
            fmt::format("the keeper (process {}) was killed by signal 9", keeper));
  EXPECT_FALSE(is_alive(task));
}

TEST(Guard, RemovesWhatAYardThatIsKilledLeavesForItsSocketAndSoDoesTheKeeper) {
  for (const bool by_the_keeper : {false, true}) {
    const sys::TemporaryDirectory place;
    const std::string made = place / "trainyard-abcdef";
    const std::string never_made = place / "trainyard-uvwxyz";
    const std::string not_empty = place / "trainyard-123456";
    const pid_t yard = ::fork();
    if (yard == 0) {
      ::setpgid(0, 0);
      Keeper keeper = Keeper::fork({.stop_grace = Duration(100)}).value();
      for (const std::string& each : {made, never_made, not_empty}) keeper.remove_at_end(each);
      for (const std::string& each : {made, not_empty}) {
        std::filesystem::create_directory(each);
        check(sys::replace_file(each + "/control", "").has_value(), "a place to write to");
        check(sys::replace_file(each + "/child-0.log", "").has_value(), "a place to write to");
      }
      check(sys::replace_file(not_empty + "/mine", "").has_value(), "a place to write to");
      const std::int64_t other = by_the_keeper ? keeper.guard_pid() : keeper.pid();
      check(sys::replace_file(place / "other", fmt::format("{}\n", other)).has_value(),
            "a place to write to");
      for (;;) ::pause();
    }
    // The other one of the two is killed with the yard, when it can do nothing any more.
    const auto other = static_cast<pid_t>(pid_in(place / "other"));
    // A guard that has just handed the yard its end of the keeper's socket has that open, too.
    ASSERT_TRUE(sys::eventually([&] {
      const auto process = sys::ProcessScan().read(other);
      return process && process->state == 'S';
    }));
    ::kill(other, SIGSTOP);
    ::kill(yard, SIGKILL);
    ::waitpid(yard, nullptr, 0);
    if (!by_the_keeper) ::kill(other, SIGKILL);
    EXPECT_TRUE(sys::eventually([&] { return !std::filesystem::exists(made); })) << by_the_keeper;
    ::kill(other, SIGKILL);
    EXPECT_TRUE(sys::eventually([&] { return !std::filesystem::exists(not_empty + "/control"); }));
    EXPECT_TRUE(std::filesystem::exists(not_empty + "/mine"));
    EXPECT_TRUE(
        sys::eventually([&] { return !std::filesystem::exists(not_empty + "/child-0.log"); }));
  }
}

TEST(Guard, LeavesTheSocketOfAYardThatLivesToItself) {
  const sys::TemporaryDirectory place;
  const std::string made = place / "trainyard-abcdef";
  {
    TestYard yard;
    yard.keeper.remove_at_end(made);
    std::filesystem::create_directory(made);
    replaced(yard);
    EXPECT_EQ(yard.run(yard.launch({"true"})), model::End(model::ExitedWith{0}));
  }
  EXPECT_TRUE(std::filesystem::exists(made));
}

/// A guard alone, whose keepers do as `body` says.
class GuardedBody {
 public:
  GuardedBody(GuardOptions options, const KeeperBody& body)
      : line_(GuardLine::make(options, body).value()) {}
  GuardedBody(GuardedBody&&) = delete;
  GuardedBody& operator=(GuardedBody&&) = delete;
  ~GuardedBody() {
    // A body that is not a real keeper does not exit by itself.
    line_.line.let_go();
    ::kill(last_, SIGKILL);
    EXPECT_TRUE(line_.line.wait_until_ended(sys::kLongEnough));
  }

  GuardLine& line() { return line_.line; }
  [[nodiscard]] pid_t first() const { return *line_.first.keeper; }
  void close_first() { line_.first.socket.close(); }
  /// The next word that comes.
  FromGuard word() {
    std::optional<FromGuard> word;
    EXPECT_TRUE(sys::eventually([&] { return (word = line_.line.hear()).has_value(); }));
    if (!word) return {};
    last_ = word->keeper.value_or(last_);
    return std::move(*word);
  }

 private:
  GuardLine::Made line_;
  pid_t last_ = *line_.first.keeper;
};

TEST(Guard, WaitsNoMoreForTheEndOfAYardThatSaysThatItLives) {
  const sys::TemporaryDirectory place;
  const std::string made = place / "trainyard-abcdef";
  std::filesystem::create_directory(made);
  {
    GuardedBody guarded({.yard_dies_within = Duration(3'600'000)},
                        [](sys::Descriptor socket, pid_t, ExitBoard&) {
                          char none = 0;
                          static_cast<void>(::read(socket.get(), &none, 1));
                        });
    guarded.line().remove_at_end(made);
    guarded.close_first();
    EXPECT_TRUE(
        sys::eventually([&] { return !guarded.line().hear() && guarded.line().is_closed(); }));
    // ~GuardedBody() expects that it ends now, long before the hour is over.
  }
  EXPECT_TRUE(std::filesystem::exists(made));
}

TEST(Guard, ReplacesAKeeperThatStopsAgainHoweverOftenItIsWoken) {
  GuardedBody guarded({.patience = Duration(5'000), .look_every = Duration(5)},
                      [](sys::Descriptor, pid_t, ExitBoard&) {
                        ::signal(SIGCONT, SIG_DFL);
                        for (;;) ::raise(SIGSTOP);
                      });
  ASSERT_TRUE(sys::eventually([&] {
    const auto keeper = sys::ProcessScan().read(guarded.first());
    return keeper && keeper->state == 'T';
  }));
  EXPECT_FALSE(guarded.line().hear());
  guarded.line().tell(ToGuard::Kind::Silent);
  const FromGuard next = guarded.word();
  ASSERT_TRUE(next.keeper && next.died);
  EXPECT_NE(*next.keeper, guarded.first());
  EXPECT_TRUE(WIFSIGNALED(*next.died));
  EXPECT_FALSE(is_alive(guarded.first()));
}

TEST(Guard, ReplacesAKeeperThatSaysNothingWhatEverItDoesWhenPatienceIsAtItsEnd) {
  GuardedBody guarded({.patience = Duration(5'000), .look_every = Duration(2)},
                      [](sys::Descriptor, pid_t, ExitBoard&) {
                        for (;;) ::pause();
                      });
  guarded.line().tell(ToGuard::Kind::Silent);
  guarded.line().tell(ToGuard::Kind::Answers);
  guarded.line().tell(ToGuard::Kind::Silent);
  const FromGuard next = guarded.word();
  ASSERT_TRUE(next.keeper && next.died);
  EXPECT_TRUE(WIFSIGNALED(*next.died));
  EXPECT_TRUE(next.was_silent);
  // The new one has its own silences.
  EXPECT_FALSE(guarded.line().hear());
}

TEST(Guard, ReplacesAKeeperThatEndsByItselfInDisorderAndNoneThatEndsInOrder) {
  for (const int code : {1, 0}) {
    GuardedBody guarded({.patience = Duration(5'000)},
                        [code](sys::Descriptor socket, pid_t, ExitBoard&) {
                          char byte = 0;
                          static_cast<void>(::read(socket.get(), &byte, 1));
                          ::_exit(code);
                        });
    // Its socket closes, as no process has kept the other end.
    guarded.close_first();
    if (code == 0) {
      EXPECT_EQ(guarded.line().wait_until_ended(sys::kLongEnough), 0);
      EXPECT_FALSE(guarded.line().hear());
      EXPECT_TRUE(guarded.line().is_closed());
      continue;
    }
    const FromGuard next = guarded.word();
    ASSERT_TRUE(next.keeper && next.died);
    EXPECT_TRUE(WIFEXITED(*next.died));
    EXPECT_EQ(WEXITSTATUS(*next.died), 1);
    EXPECT_FALSE(next.was_silent);
  }
}

TEST(Guard, ReportsExitsThatItsKeeperHadReapedAndUnreapedExitsWith0) {
  GuardedBody guarded({.patience = Duration(5'000)},
                      [](sys::Descriptor socket, pid_t, ExitBoard& board) {
                        char byte = 0;
                        static_cast<void>(::read(socket.get(), &byte, 1));
                        // The attempts 1 and 3 fail, and the keeper reaps the first one alone.
                        for (const std::uint32_t number : {1U, 2U, 3U}) {
                          const pid_t task = ::fork();
                          if (task == 0) ::_exit(number == 2 ? 0 : 7);
                          board.enter(TestYard::key(number), task);
                          siginfo_t how{};
                          ::waitid(P_PID, static_cast<id_t>(task), &how, WEXITED | WNOWAIT);
                          if (number != 1) continue;
                          board.mark_ended(TestYard::key(number), model::ExitedWith{7});
                          ::waitpid(task, nullptr, 0);
                        }
                        ::_exit(1);
                      });
  guarded.close_first();
  FromGuard next = guarded.word();
  ASSERT_TRUE(next.keeper && next.died);
  const UnreportedExit failed{.key = TestYard::key(1), .exit = model::ExitedWith{7}};
  const UnreportedExit finished{.key = TestYard::key(2), .exit = model::ExitedWith{0}};
  EXPECT_THAT(next.exits, ElementsAre(failed, finished));
  // The next keeper has a board of its own.
  next.socket.close();
  EXPECT_THAT(guarded.word().exits, ElementsAre(failed, finished));
}

TEST(Guard, ReportsExitsThatItsKeeperWaitedToReport) {
  TestYard yard({.stop_grace = Duration(5000), .result_answer_max = sys::kLongEnough});
  const std::string leaves_a_result = "echo {} > $TRAINYARD_TASK_DIR/result.json";
  EXPECT_EQ(yard.run(yard.shell(leaves_a_result)), model::End(model::ExitedWith{0}));
  // The process that reads results for the keeper does not answer from now on.
  std::int64_t reader = 0;
  sys::ProcessScan scan;
  for (const sys::ProcessStat& process : scan.read_all()) {
    if (process.parent == yard.keeper.pid()) reader = process.pid;
  }
  ASSERT_GT(reader, 0);
  ::kill(static_cast<pid_t>(reader), SIGSTOP);
  for (const std::uint32_t number : {1U, 2U}) {
    yard.keeper.start(TestYard::key(number),
                      yard.shell(leaves_a_result + (number == 1 ? "" : "; exit 3"), number));
    const std::int64_t task = yard.wait_for_start(number);
    EXPECT_TRUE(sys::eventually([&] { return !scan.read(task); })) << "it is reaped";
  }
  EXPECT_THAT(replaced(yard).exits,
              ElementsAre(UnreportedExit{.key = TestYard::key(1), .exit = model::ExitedWith{0}},
                          UnreportedExit{.key = TestYard::key(2), .exit = model::ExitedWith{3}}));
}

/// A yard that adopts orphans, as this process does no more when the test is over.
class AdoptingYard : public TestYard {
 public:
  explicit AdoptingYard(KeeperOptions options = {.stop_grace = Duration(5000)})
      : TestYard(adopting(std::move(options))) {}
  AdoptingYard(AdoptingYard&&) = delete;
  AdoptingYard& operator=(AdoptingYard&&) = delete;
  ~AdoptingYard() {
    ::prctl(PR_SET_CHILD_SUBREAPER, 0);
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
  }

  /// Suspends the keeper, so that it notices nothing of what follows.
  void suspend_keeper() const {
    ::kill(static_cast<pid_t>(keeper.pid()), SIGSTOP);
    EXPECT_TRUE(sys::eventually([this] {
      const auto process = sys::ProcessScan().read(keeper.pid());
      return process && process->state == 'T';
    }));
  }
  /// Kills guard and keeper. Returns the last exits.
  std::vector<UnreportedExit> kill_both() {
    ::kill(static_cast<pid_t>(keeper.guard_pid()), SIGKILL);
    ::kill(static_cast<pid_t>(keeper.pid()), SIGKILL);
    EXPECT_TRUE(wait([this] { return is_gone(*this); }));
    return is_gone(*this) ? std::get<KeeperGone>(news.back()).exits : std::vector<UnreportedExit>();
  }

 private:
  static KeeperOptions adopting(KeeperOptions options) {
    options.adopts_orphans = true;
    return options;
  }
};

TEST(Guard, LeavesExitsWith0ThatNobodyHasSeenToItsYardWhenItIsKilledWithTheKeeper) {
  AdoptingYard yard;
  const std::string waits = "until [ -e go ]; do sleep 0.01; done; ";
  for (const std::uint32_t number : {1U, 2U, 3U}) {
    yard.keeper.start(TestYard::key(number),
                      yard.shell(waits + fmt::format("exit {}", number == 2 ? 3 : 0), number));
    yard.wait_for_start(number);
  }
  yard.keeper.start(TestYard::key(4), yard.shell(kStubborn, 4));
  const std::int64_t lives = yard.wait_for_start(4);
  yard.wait_for_pid("stubborn");
  yard.suspend_keeper();
  check(sys::replace_file(yard.directory / "go", "").has_value(), "a place to write to");
  for (const std::uint32_t number : {1U, 2U, 3U}) {
    const std::int64_t task = *yard.started(number);
    EXPECT_TRUE(sys::eventually([task] { return !is_alive(task); }));
  }
  const UnreportedExit first{.key = TestYard::key(1), .exit = model::ExitedWith{0}};
  const UnreportedExit third{.key = TestYard::key(3), .exit = model::ExitedWith{0}};
  EXPECT_THAT(yard.kill_both(), ElementsAre(first, third));
  EXPECT_TRUE(sys::eventually([lives] { return !is_alive(lives); }));
  EXPECT_FALSE(sys::ProcessScan().read(yard.keeper.pid())) << "it is reaped";
}

TEST(Guard, LeavesExitsThatItsKeeperWaitedToReportToItsYardWhenItIsKilledWithTheKeeper) {
  AdoptingYard yard({.stop_grace = Duration(5000), .result_answer_max = sys::kLongEnough});
  const std::string leaves_a_result = "echo {} > $TRAINYARD_TASK_DIR/result.json";
  EXPECT_EQ(yard.run(yard.shell(leaves_a_result)), model::End(model::ExitedWith{0}));
  // The process that reads results for the keeper does not answer from now on.
  sys::ProcessScan scan;
  for (const sys::ProcessStat& process : scan.read_all()) {
    if (process.parent == yard.keeper.pid()) ::kill(static_cast<pid_t>(process.pid), SIGSTOP);
  }
  for (const std::uint32_t number : {1U, 2U}) {
    yard.keeper.start(TestYard::key(number),
                      yard.shell(leaves_a_result + (number == 1 ? "" : "; exit 3"), number));
    const std::int64_t task = yard.wait_for_start(number);
    EXPECT_TRUE(sys::eventually([&] { return !scan.read(task); })) << "it is reaped";
  }
  yard.suspend_keeper();
  EXPECT_THAT(yard.kill_both(),
              ElementsAre(UnreportedExit{.key = TestYard::key(1), .exit = model::ExitedWith{0}},
                          UnreportedExit{.key = TestYard::key(2), .exit = model::ExitedWith{3}}));
}

TEST(Guard, LeavesNoExitOfATaskThatWasToldToEndToItsYard) {
  AdoptingYard yard;
  yard.keeper.start(TestYard::key(0), yard.shell("trap 'echo $$ > told; until [ -e go ]; do sleep "
                                                 "0.01; done; exit 0' TERM; echo $$ > runs; "
                                                 "while :; do sleep 0.01; done"));
  const std::int64_t task = yard.wait_for_start();
  yard.wait_for_pid("runs");
  yard.keeper.signal(TestYard::key(0), SIGTERM, Duration(1'000'000));
  yard.wait_for_pid("told");
  yard.suspend_keeper();
  check(sys::replace_file(yard.directory / "go", "").has_value(), "a place to write to");
  EXPECT_TRUE(sys::eventually([task] { return !is_alive(task); }));
  EXPECT_THAT(yard.kill_both(), IsEmpty());
}

/// Waits until a child of this process has ended.
void wait_for_zombie(pid_t child) {
  siginfo_t how{};
  ::waitid(P_PID, static_cast<id_t>(child), &how, WEXITED | WNOWAIT);
}

TEST(Guard, HasAYardThatReapsOrphansAndNoChildThatItHasForked) {
  AdoptingYard yard;
  const pid_t plain = ::fork();
  if (plain == 0) ::_exit(3);
  const pid_t leads = ::fork();
  if (leads == 0) {
    ::setsid();
    const pid_t orphan = ::fork();
    if (orphan == 0) ::_exit(EXIT_SUCCESS);
    wait_for_zombie(orphan);
    check(sys::replace_file(yard.directory / "orphan", fmt::format("{}\n", orphan)).has_value(),
          "a place to write to");
    ::_exit(4);
  }
  wait_for_zombie(plain);
  wait_for_zombie(leads);
  const std::int64_t orphan = pid_in(yard.directory / "orphan");
  ASSERT_EQ(sys::ProcessScan().read(orphan)->parent, ::getpid());
  yard.keeper.look();
  EXPECT_FALSE(sys::ProcessScan().read(orphan));
  for (const pid_t child : {plain, leads}) {
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(WEXITSTATUS(status), child == plain ? 3 : 4);
  }
}

TEST(Guard, HasAYardThatAdoptsNoMoreBesideManyChildrenThatNobodyReaps) {
  AdoptingYard yard;
  const auto adopts = [] {
    int is_subreaper = 0;
    ::prctl(PR_GET_CHILD_SUBREAPER, &is_subreaper);
    return is_subreaper != 0;
  };
  std::vector<pid_t> children;
  for (const std::size_t count : {16U, 17U}) {
    while (children.size() < count) {
      children.push_back(::fork());
      if (children.back() == 0) ::_exit(EXIT_SUCCESS);
      wait_for_zombie(children.back());
    }
    yard.keeper.look();
    EXPECT_EQ(adopts(), count == 16);
  }
  for (const pid_t child : children) ::waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace trainyard::process

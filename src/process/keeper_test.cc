// The keeper and its yard: many tasks at once, and what happens when one of the two dies.
#include "process/keeper.h"

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hardware/cgroup.h"
#include "process/keeper_process.h"
#include "process/test_yard.h"
#include "sys/descriptor.h"
#include "sys/pidfd.h"
#include "sys/process_scan.h"
#include "sys/test_directory.h"
#include "sys/test_wait.h"

namespace trainyard::process {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// The state in /proc: 'T' is stopped.
char state_of(std::int64_t pid) {
  const auto process = sys::ProcessScan().read(pid);
  return process ? process->state : '?';
}

TEST(Keeper, RunsThreeHundredAtOnceAndTellsOfEachTwice) {
  TestYard yard;
  constexpr std::uint32_t kCount = 300;
  ASSERT_EQ(::mkfifo((yard.directory / "gate").c_str(), 0600), 0);
  for (std::uint32_t i = 0; i < kCount; ++i) {
    yard.keeper.start(TestYard::key(i),
                      yard.shell("read line < gate; exit " + std::to_string(i % 100), i));
  }
  ASSERT_TRUE(yard.wait([&] { return yard.news.size() == kCount; }));
  const sys::Descriptor gate(::open((yard.directory / "gate").c_str(), O_RDWR | O_CLOEXEC));
  const std::string lines(kCount, '\n');
  ASSERT_EQ(::write(gate.get(), lines.data(), lines.size()), static_cast<ssize_t>(lines.size()));
  ASSERT_TRUE(yard.wait([&] { return yard.news.size() == std::size_t{2} * kCount; }));
  for (std::uint32_t i = 0; i < kCount; ++i) {
    ASSERT_TRUE(yard.started(i) && yard.ended(i)) << i;
    EXPECT_EQ(yard.ended(i)->end, model::End(model::ExitedWith{static_cast<int>(i % 100)})) << i;
  }
}

TEST(Keeper, TellsOfAStartBeforeTheEnd) {
  TestYard yard;
  constexpr std::uint32_t kCount = 50;
  for (std::uint32_t i = 0; i < kCount; ++i) {
    yard.news.clear();
    yard.keeper.start(TestYard::key(i), yard.launch({"/bin/true"}, i));
    static_cast<void>(yard.wait_for_end(i));
    ASSERT_EQ(yard.news.size(), 2U);
    ASSERT_TRUE(std::holds_alternative<ProcessStarted>(yard.news[0]));
    ASSERT_TRUE(std::holds_alternative<ProcessEnded>(yard.news[1]));
  }
}

TEST(Keeper, TellsWhenItSawAProcessBeginAndEnd) {
  TestYard yard;
  ASSERT_EQ(::mkfifo((yard.directory / "gate").c_str(), 0600), 0);
  const Duration before = sys::EventLoop::now();
  yard.keeper.start(TestYard::key(0), yard.shell("read line < gate"));
  const std::int64_t pid = yard.wait_for_start();
  const Duration running = sys::EventLoop::now();
  const sys::Descriptor gate(::open((yard.directory / "gate").c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::write(gate.get(), "\n", 1), 1);
  EXPECT_TRUE(sys::eventually([&] { return !is_alive(pid); }));
  const ProcessEnded ended = yard.wait_for_end();
  const Duration began = std::get<ProcessStarted>(yard.news.front()).at;
  EXPECT_LE(before, began);
  EXPECT_LE(began, running);
  ASSERT_TRUE(ended.at);
  EXPECT_LE(running, *ended.at);
  EXPECT_LE(*ended.at, sys::EventLoop::now());

  yard.news.clear();
  yard.keeper.start(TestYard::key(0), yard.launch({"/bin/true"}));
  const ProcessEnded at_once = yard.wait_for_end();
  EXPECT_LE(std::get<ProcessStarted>(yard.news.front()).at, at_once.at);
}

TEST(Keeper, TellsOfALongTaskWithoutWaitingForItsEnd) {
  TestYard yard;
  yard.keeper.start(TestYard::key(0), yard.launch({"sleep", "1000"}));
  EXPECT_TRUE(is_alive(yard.wait_for_start()));
}

TEST(Keeper, TakesMoreThanItsBufferHoldsBeforeTheKeeperReads) {
  TestYard yard;
  // 60 MB of launches in one turn.
  constexpr std::uint32_t kCount = 60;
  for (std::uint32_t i = 0; i < kCount; ++i) {
    model::Launch launch = yard.launch({"true"}, i);
    for (int part = 0; part < 10; ++part) {
      launch.environment.push_back("FILL" + std::to_string(part) + "=" + std::string(100'000, 'x'));
    }
    yard.keeper.start(TestYard::key(i), launch);
  }
  ASSERT_TRUE(yard.wait([&] { return yard.news.size() == std::size_t{2} * kCount; }));
  for (std::uint32_t i = 0; i < kCount; ++i)
    EXPECT_EQ(yard.ended(i)->end, model::End(model::ExitedWith{0}));
}

TEST(Keeper, WakesForNothingWhileTasksRun) {
  TestYard yard;
  for (std::uint32_t i = 0; i < 4; ++i) {
    yard.keeper.start(TestYard::key(i), yard.launch({"sleep", "1000"}, i));
  }
  ASSERT_TRUE(yard.wait([&] { return yard.news.size() == 4; }));
  const auto switches = [&] {
    const std::string status =
        hardware::read_small_file("/proc/" + std::to_string(yard.keeper.pid()) + "/status");
    return hardware::number_after(status, "voluntary_ctxt_switches").value_or(-1);
  };
  // Waits until it has come to rest.
  std::int64_t before = -1;
  ASSERT_TRUE(
      yard.wait([&] { return std::exchange(before, switches()) == before && before >= 0; }));
  yard.loop.run_once(Duration(500));
  EXPECT_EQ(switches(), before);
}

TEST(Keeper, IsSeenUnderItsNameInASessionOfItsOwn) {
  TestYard yard;
  EXPECT_EQ(yard.run(yard.launch({"true"})), model::End(model::ExitedWith{0}));
  const std::int64_t pid = yard.keeper.pid();
  EXPECT_EQ(hardware::read_small_file("/proc/" + std::to_string(pid) + "/comm"),
            "trainyard-keep\n");
  EXPECT_EQ(sys::ProcessScan().read(pid)->session, pid);
  // Ctrl-C and the like do not reach or end it.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::kill(static_cast<pid_t>(pid), signal);
  EXPECT_EQ(yard.run(yard.launch({"true"})), model::End(model::ExitedWith{0}));
}

TEST(Keeper, IsNotForkedBesideAnotherThread) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const sys::Descriptor wait_here(ends[0]);
  sys::Descriptor let_go(ends[1]);
  std::thread other([&] {
    ::pthread_setname_np(::pthread_self(), "a-thread");
    char byte = 0;
    static_cast<void>(::read(wait_here.get(), &byte, 1));
  });
  std::string why;
  EXPECT_TRUE(sys::eventually([&] {
    const auto keeper = Keeper::fork({});
    why = keeper ? "" : keeper.error().message;
    return why.contains("a-thread");
  }));
  let_go.close();
  other.join();
  EXPECT_THAT(why, HasSubstr("cannot fork the keeper beside other threads ("));
}

TEST(Keeper, EndsEverythingWhenItIsDestroyed) {
  std::int64_t runaway = 0;
  std::int64_t task = 0;
  std::int64_t keeper = 0;
  {
    TestYard yard({.stop_grace = Duration(100)});
    keeper = yard.keeper.pid();
    yard.keeper.start(TestYard::key(0),
                      yard.shell("trap '' TERM; (setsid sh -c 'echo $$ > runaway; sleep 1000' &);"
                                 "while :; do sleep 0.01; done"));
    task = yard.wait_for_start();
    runaway = yard.wait_for_pid("runaway");
    EXPECT_TRUE(is_alive(runaway));
  }
  EXPECT_FALSE(is_alive(task));
  EXPECT_FALSE(is_alive(runaway));
  EXPECT_FALSE(is_alive(keeper));
}

TEST(Keeper, TellsTheGroupAloneWhereThatPassesTermOn) {
  for (const bool passes_on : {false, true}) {
    TestYard yard;
    model::Launch launch = yard.shell(
        "trap 'echo led > led' TERM\n"
        "setsid sh -c 'trap \"echo told > told; exit\" TERM; echo $$ > up; "
        "until [ -f end ]; do sleep 0.01; done' &\n"
        "while [ ! -f end ]; do sleep 0.01; done");
    launch.passes_term_on = passes_on;
    yard.keeper.start(TestYard::key(0), launch);
    yard.wait_for_start();
    yard.wait_for_pid("up");
    yard.keeper.signal(TestYard::key(0), SIGTERM);
    ASSERT_TRUE(yard.wait([&] {
      return std::filesystem::exists(yard.directory / "led") &&
             (passes_on || std::filesystem::exists(yard.directory / "told"));
    }));
    std::ofstream(yard.directory / "end") << "end\n" << std::flush;
    ASSERT_TRUE(yard.wait([&] { return yard.ended(0).has_value(); }));
    EXPECT_EQ(std::filesystem::exists(yard.directory / "told"), !passes_on);
  }
}

TEST(Keeper, GoesAtOnceWhenEverythingEndsOnTerm) {
  // If it waited for the grace, the test would outlive its time limit.
  TestYard yard({.stop_grace = Duration(1'000'000)});
  yard.keeper.start(TestYard::key(0), yard.launch({"sleep", "1000"}));
  yard.wait_for_start();
}

TEST(Keeper, EndsEverythingWhenTheYardIsKilled) {
  const sys::TemporaryDirectory place;
  const pid_t yard_process = ::fork();
  if (yard_process == 0) {
    ::setenv("TMPDIR", place.path().c_str(), 1);  // So that what it leaves behind goes with ours.
    TestYard yard({.stop_grace = Duration(200)});
    model::Launch launch = yard.shell(
        "trap '' TERM; (setsid sh -c 'trap \"\" TERM; echo $$ > runaway; while :; do sleep 0.01; "
        "done' &);"
        "echo $$ > task; while :; do sleep 0.01; done");
    launch.working_directory = place.path();
    yard.keeper.start(TestYard::key(0), launch);
    for (;;) yard.loop.run_once(std::nullopt);
  }
  const std::int64_t task = pid_in(place / "task");
  const std::int64_t runaway = pid_in(place / "runaway");
  const std::int64_t keeper = sys::ProcessScan().read(task)->parent;
  EXPECT_TRUE(is_alive(runaway));
  ::kill(yard_process, SIGKILL);
  ASSERT_EQ(::waitpid(yard_process, nullptr, 0), yard_process);
  EXPECT_TRUE(
      sys::eventually([&] { return !is_alive(task) && !is_alive(runaway) && !is_alive(keeper); }));
}

TEST(Keeper, SendsTermFirstUnlessItKillsWhenTheYardDiesAndTheYardHasDied) {
  struct Case {
    bool kills;
    bool dies;
    bool gets_term;
  };
  for (const auto& [kills, dies, gets_term] :
       {Case{false, true, true}, Case{true, true, false}, Case{true, false, true}}) {
    const sys::TemporaryDirectory place;
    const pid_t yard_process = ::fork();
    if (yard_process == 0) {
      ::setenv("TMPDIR", place.path().c_str(), 1);  // So that what it leaves goes with ours.
      {
        // A KILL after the grace would outlive the time limit of the test.
        TestYard yard({.stop_grace = Duration(1'000'000), .kills_when_yard_dies = kills});
        model::Launch launch = yard.shell(
            "trap 'echo TERM > term; exit' TERM; echo $$ > task; while :; do sleep 0.01; done");
        launch.working_directory = place.path();
        yard.keeper.start(TestYard::key(0), launch);
        // The keeper kills the task at once until it has seen the start.
        std::ofstream(place / "started") << yard.wait_for_start() << '\n';
        yard.wait([&] { return std::filesystem::exists(place / "leave"); });
      }
      std::_Exit(0);
    }
    const std::int64_t task = pid_in(place / "task");
    EXPECT_EQ(pid_in(place / "started"), task);
    if (dies) ::kill(yard_process, SIGKILL);
    if (!dies) std::ofstream(place / "leave") << "leave\n";
    EXPECT_EQ(::waitpid(yard_process, nullptr, 0), yard_process);
    EXPECT_TRUE(sys::eventually([&] { return !is_alive(task); }));
    EXPECT_EQ(std::filesystem::exists(place / "term"), gets_term) << kills << dies;
  }
}

TEST(Keeper, SaysOnceThatItIsGoneAfterAllElseItSaid) {
  TestYard yard({.stop_grace = Duration(5000), .replacements_max = 0});
  EXPECT_EQ(yard.run(yard.shell("exit 1")), model::End(model::ExitedWith{1}));
  yard.keeper.start(TestYard::key(1), yard.launch({"sleep", "1000"}, 1));
  const std::int64_t task = yard.wait_for_start(1);
  ::kill(static_cast<pid_t>(yard.keeper.pid()), SIGKILL);
  ASSERT_TRUE(yard.wait([&] { return std::holds_alternative<KeeperGone>(yard.news.back()); }));
  EXPECT_EQ(std::get<KeeperGone>(yard.news.back()).why,
            fmt::format("the keeper (process {}) was killed by signal 9; 1 in a row have ended at "
                        "once",
                        yard.keeper.pid()));
  EXPECT_TRUE(std::holds_alternative<KeeperDied>(yard.news.at(yard.news.size() - 2)));
  // Nothing comes of what it is asked now, and nothing more is said.
  const std::size_t said = yard.news.size();
  yard.keeper.start(TestYard::key(2), yard.launch({"true"}, 2));
  yard.keeper.signal(TestYard::key(1), SIGKILL);
  yard.loop.run_once(Duration(20));
  EXPECT_EQ(yard.news.size(), said);
  EXPECT_FALSE(is_alive(task));
}

TEST(Keeper, IsSilentWhenItDoesNotAnswerAndIsToldToGoOnWhereItIsStopped) {
  TestYard yard({.stop_grace = Duration(5000), .guard_looks_every = Duration(20)});
  yard.keeper.set_silence_max(Duration(50));
  const std::int64_t keeper = yard.keeper.pid();
  EXPECT_EQ(yard.run(yard.shell("exit 1")), model::End(model::ExitedWith{1}));
  yard.news.clear();
  ASSERT_EQ(::kill(static_cast<pid_t>(keeper), SIGSTOP), 0);
  ASSERT_TRUE(sys::eventually([&] { return state_of(keeper) == 'T'; }));
  // The first look asks it, as it is stopped, though it has just been heard. The second may be the
  // first after a sleep of ours.
  yard.keeper.look();
  const Duration judged = sys::EventLoop::now() + yard.keeper.silence_max();
  while (sys::EventLoop::now() < judged) yard.loop.run_once(judged - sys::EventLoop::now());
  yard.keeper.look();
  EXPECT_THAT(yard.news, IsEmpty());
  yard.keeper.look();
  ASSERT_TRUE(yard.wait([&] { return yard.news.size() == 2; }));
  EXPECT_TRUE(std::get<KeeperHeard>(yard.news.front()).silent);
  EXPECT_FALSE(std::get<KeeperHeard>(yard.news.back()).silent);
  // The same one goes on.
  EXPECT_EQ(yard.keeper.pid(), keeper);
  EXPECT_EQ(yard.run(yard.shell("exit 1")), model::End(model::ExitedWith{1}));
}

/// A task that waits at a gate runs `then` while its keeper is stopped, and ends.
struct EndUnheard {
  Duration stopped;  ///< The keeper was, from then on.
  Duration went_on;  ///< The keeper, no earlier.
  std::optional<Duration> told;
};
EndUnheard end_while_the_keeper_is_stopped(const std::string& then) {
  const auto later = [](Duration than) {
    constexpr Duration kClearlyLater(20);
    return sys::eventually([=] { return sys::EventLoop::now() >= than + kClearlyLater; });
  };
  TestYard yard;
  const std::string gate = yard.directory / "gate";
  EXPECT_EQ(::mkfifo(gate.c_str(), 0600), 0);
  yard.keeper.start(TestYard::key(0), yard.shell("read line < gate; " + then));
  const std::int64_t task = yard.wait_for_start();
  const auto keeper = static_cast<pid_t>(yard.keeper.pid());
  ::kill(keeper, SIGSTOP);
  EXPECT_TRUE(sys::eventually([&] { return state_of(keeper) == 'T'; }));
  EndUnheard end{.stopped = sys::EventLoop::now(), .went_on = {}, .told = {}};
  EXPECT_TRUE(later(end.stopped));
  sys::Descriptor(::open(gate.c_str(), O_WRONLY | O_CLOEXEC)).close();
  EXPECT_TRUE(sys::eventually([&] { return state_of(task) == 'Z'; }));
  EXPECT_TRUE(later(sys::EventLoop::now()));
  end.went_on = sys::EventLoop::now();
  ::kill(keeper, SIGCONT);
  end.told = yard.wait_for_end().at;
  return end;
}

TEST(Keeper, TellsOfWhatEndedWhileItWasStoppedThatItDidNotEndBeforeThat) {
  const EndUnheard end = end_while_the_keeper_is_stopped("exit 3");
  ASSERT_TRUE(end.told);
  EXPECT_LE(*end.told, end.stopped);
}

TEST(Keeper, KnowsWhatEndedWhileItWasStoppedToHaveLivedWhenItWroteItsResult) {
  const EndUnheard end =
      end_while_the_keeper_is_stopped("echo '{}' > $TRAINYARD_TASK_DIR/result.json");
  ASSERT_TRUE(end.told);
  // The clock of files is a little behind.
  EXPECT_GT(*end.told, end.stopped);
  EXPECT_LT(*end.told, end.went_on);
}

TEST(KeeperProcess, TakesNonsenseOrAHalfMessageForTheEndOfTheYard) {
  for (const std::string& bytes :
       {std::string("\xff\xff\xff\xff nonsense"), std::string("\x20\0\0\0\1", 5)}) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    sys::Descriptor ours(ends[0]);
    sys::Descriptor its(ends[1]);
    const pid_t keeper = ::fork();
    if (keeper == 0) {
      ours.close();
      ExitBoard board;
      KeeperProcess(std::move(its), sys::open_pidfd(::getppid()), {.stop_grace = Duration(100)}, {},
                    board)
          .run();
      ::_exit(0);
    }
    its.close();
    ASSERT_EQ(::write(ours.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    ASSERT_EQ(::shutdown(ours.get(), SHUT_WR), 0);
    int status = -1;
    ASSERT_EQ(::waitpid(keeper, &status, 0), keeper);
    EXPECT_EQ(status, 0);
  }
}

}  // namespace
}  // namespace trainyard::process

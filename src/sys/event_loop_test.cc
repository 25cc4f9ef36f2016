// Waiting: what wakes the loop, what does not, and how much runs in one go.
#include "sys/event_loop.h"

#include <array>
#include <csignal>
#include <cstddef>
#include <string>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sys/descriptor.h"
#include "sys/test_wait.h"

namespace trainyard::sys {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    read = Descriptor(ends[0]);
    write = Descriptor(ends[1]);
  }
  void put(const std::string& text) const {
    EXPECT_EQ(::write(write.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  [[nodiscard]] std::string take(std::size_t at_most = 100) const {
    std::string text(at_most, '\0');
    const ssize_t got = ::read(read.get(), text.data(), at_most);
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return text;
  }
  Descriptor read;
  Descriptor write;
};

constexpr Duration kSoon{0};

TEST(EventLoop, TellsThatADescriptorCanBeReadEachTimeThatThereIsSomething) {
  EventLoop loop;
  const Pipe pipe;
  std::vector<std::string> read;
  loop.watch_readable(pipe.read.get(), [&] { read.push_back(pipe.take()); });
  loop.run_once(kSoon);
  EXPECT_THAT(read, IsEmpty());
  pipe.put("one");
  loop.run_once(kLongEnough);
  pipe.put("two");
  loop.run_once(kLongEnough);
  loop.run_once(kSoon);
  EXPECT_THAT(read, ElementsAre("one", "two"));
}

TEST(EventLoop, TellsAgainWhatWasNotReadButOnlyOnceATurn) {
  EventLoop loop;
  const Pipe pipe;
  std::vector<std::string> read;
  loop.watch_readable(pipe.read.get(), [&] { read.push_back(pipe.take(1)); });
  pipe.put("abc");
  loop.run_once(kLongEnough);
  EXPECT_THAT(read, ElementsAre("a"));
  loop.run_once(kLongEnough);
  EXPECT_THAT(read, ElementsAre("a", "b"));
}

TEST(EventLoop, TellsThatTheOtherEndHasHungUp) {
  EventLoop loop;
  Pipe pipe;
  int told = 0;
  loop.watch_readable(pipe.read.get(), [&] { ++told; });
  pipe.write.close();
  loop.run_once(kLongEnough);
  EXPECT_EQ(told, 1);
}

TEST(EventLoop, RunsEverythingThatIsReadyInOneTurn) {
  EventLoop loop;
  const Pipe first;
  const Pipe second;
  std::vector<std::string> read;
  loop.watch_readable(first.read.get(), [&] { read.push_back(first.take()); });
  loop.watch_readable(second.read.get(), [&] { read.push_back(second.take()); });
  first.put("first");
  second.put("second");
  loop.run_once(kLongEnough);
  EXPECT_THAT(read, ::testing::UnorderedElementsAre("first", "second"));
}

TEST(EventLoop, LeavesAnUnwatchedDescriptorOpenAndSilent) {
  EventLoop loop;
  const Pipe pipe;
  int told = 0;
  loop.watch_readable(pipe.read.get(), [&] {
    ++told;
    loop.unwatch(pipe.read.get());
  });
  pipe.put("x");
  loop.run_once(kLongEnough);
  loop.run_once(kSoon);
  EXPECT_EQ(told, 1);
  EXPECT_EQ(pipe.take(), "x");

  // The same number can be watched again.
  loop.watch_readable(pipe.read.get(), [&] { told += 10; });
  pipe.put("y");
  loop.run_once(kLongEnough);
  EXPECT_EQ(told, 11);
}

TEST(EventLoop, DoesNotReportTheEventOfARemovedWatchAsOneOfANewWatch) {
  EventLoop loop;
  const std::array<Pipe, 2> pipes;
  const Pipe empty;
  const Pipe full;
  full.put(std::string(65'536, 'x'));
  std::vector<std::string> called;
  const auto replace_both = [&] {
    called.emplace_back("removed");
    for (const Pipe& pipe : pipes) loop.unwatch(pipe.read.get());
    loop.watch_readable(empty.read.get(), [&] { called.push_back("readable" + empty.take()); });
    loop.when_writable(full.write.get(), [&] { called.emplace_back("writable"); });
  };
  for (const Pipe& pipe : pipes) {
    loop.watch_readable(pipe.read.get(), replace_both);
    pipe.put("x");
  }
  loop.run_once(kLongEnough);
  EXPECT_THAT(called, ElementsAre("removed"));
  empty.put("x");
  EXPECT_EQ(full.take(65'536).size(), 65'536U);
  loop.run_once(kLongEnough);
  loop.run_once(kSoon);
  EXPECT_THAT(called, UnorderedElementsAre("removed", "readablex", "writable"));
}

TEST(EventLoop, ClosesNoDescriptorOfTheCallerWhenItEnds) {
  const Pipe pipe;
  {
    EventLoop loop;
    loop.watch_readable(pipe.read.get(), [] {});
    loop.run_once(kSoon);
  }
  pipe.put("still there");
  EXPECT_EQ(pipe.take(), "still there");
}

TEST(EventLoop, TellsOnceThatADescriptorCanBeWritten) {
  EventLoop loop;
  const Pipe pipe;
  int told = 0;
  loop.when_writable(pipe.write.get(), [&] { ++told; });
  loop.run_once(kLongEnough);
  loop.run_once(kSoon);
  EXPECT_EQ(told, 1);
  loop.when_writable(pipe.write.get(), [&] { ++told; });
  loop.run_once(kLongEnough);
  EXPECT_EQ(told, 2);
}

TEST(EventLoop, ComesBackWhenTheTimeoutHasPassed) {
  EventLoop loop;
  const Duration before = EventLoop::now();
  loop.run_once(Duration(20));
  EXPECT_GE(EventLoop::now() - before, Duration(19));
}

TEST(EventLoop, RunsTimersInTheirOrderAndNoneThatWasCancelled) {
  EventLoop loop;
  std::vector<std::string> fired;
  // However late the machine lets us set one: each is due after those that are to run before it.
  loop.after(kLongEnough, [&] { fired.emplace_back("last"); });
  const EventLoop::TimerId cancelled =
      loop.after(Duration(0), [&] { fired.emplace_back("never"); });
  loop.after(Duration(0), [&] { fired.emplace_back("first"); });
  loop.after(Duration(1), [&] { fired.emplace_back("second"); });
  loop.cancel(cancelled);
  while (fired.size() < 2) loop.run_once(kLongEnough);
  loop.cancel(cancelled);
  loop.run_once(Duration(3));
  EXPECT_THAT(fired, ElementsAre("first", "second"));
}

TEST(EventLoop, RunsWhatWasPostedWithoutWaiting) {
  EventLoop loop;
  int run = 0;
  loop.post([&] { ++run; });
  loop.run_once(std::nullopt);
  EXPECT_EQ(run, 1);
}

TEST(EventLoop, RunsWhatIsDueBeforeWaitingAndStillWaits) {
  EventLoop loop;
  const Pipe pipe;
  std::vector<std::string> order;
  loop.watch_readable(pipe.read.get(), [&] { order.push_back(pipe.take()); });
  loop.before_waiting([&] {
    order.emplace_back("before");
    pipe.put("sent before waiting");
  });
  loop.run_once(kLongEnough);
  EXPECT_THAT(order, ElementsAre("before", "sent before waiting"));
}

TEST(EventLoop, TellsSignals) {
  EventLoop loop;
  std::vector<int> signals;
  loop.watch_signals({SIGUSR1, SIGUSR2}, [&](int signal) { signals.push_back(signal); });
  ::raise(SIGUSR1);
  loop.run_once(kLongEnough);
  ::raise(SIGUSR2);
  loop.run_once(kLongEnough);
  EXPECT_THAT(signals, ElementsAre(SIGUSR1, SIGUSR2));
  loop.forget_signals({SIGUSR1});
  EXPECT_EXIT(::raise(SIGUSR1), ::testing::KilledBySignal(SIGUSR1), "");
}

TEST(EventLoop, WakesForNothingWhileItWaits) {
  EventLoop loop;
  const Pipe pipe;
  loop.watch_readable(pipe.read.get(), [] {});
  // A wait that has ended, or was cancelled, must not wake it later.
  loop.run_once(Duration(5));
  loop.post([] {});
  loop.run_once(Duration(30));
  loop.run_once(Duration(1));
  rusage before{};
  rusage after{};
  ASSERT_EQ(::getrusage(RUSAGE_THREAD, &before), 0);
  loop.run_once(Duration(200));
  ASSERT_EQ(::getrusage(RUSAGE_THREAD, &after), 0);
  EXPECT_LE(after.ru_nvcsw - before.ru_nvcsw, 1);
}

TEST(EventLoop, ThatCannotBeMadeIsAnErrorThatNamesTheLimit) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  std::string why;
  try {
    const EventLoop loop;
  } catch (const EventLoopError& error) {
    why = error.what();
  }
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(why, "cannot wait for events: too many open files, see 'ulimit -n'");
}

}  // namespace
}  // namespace trainyard::sys

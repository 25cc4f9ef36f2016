#include "sys/waker.h"

#include <thread>

#include <sys/resource.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/time.h"

namespace trainyard::sys {
namespace {

TEST(Waker, ThatNoDescriptorIsLeftIsAnError) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const Result<Waker> waker = Waker::make();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(waker.has_value());
  EXPECT_THAT(waker.error().message, ::testing::HasSubstr("cannot wake another thread: "));
}

constexpr Duration kPatience{30'000};

TEST(StopWatch, CallsBackOnceOnTheLoopWhicheverThreadStops) {
  EventLoop loop;
  std::stop_source stop;
  int calls = 0;
  const std::thread::id here = std::this_thread::get_id();
  const StopWatch watch(loop, stop.get_token(), [&] {
    EXPECT_EQ(std::this_thread::get_id(), here);
    ++calls;
  });
  const std::jthread other([&stop] { stop.request_stop(); });
  while (calls == 0) loop.run_once(kPatience);
  loop.run_once(Duration{0});
  EXPECT_EQ(calls, 1);
}

TEST(StopWatch, CallsBackForATokenThatWasStoppedBefore) {
  EventLoop loop;
  std::stop_source stop;
  stop.request_stop();
  bool was_called = false;
  const StopWatch watch(loop, stop.get_token(), [&] { was_called = true; });
  EXPECT_FALSE(was_called) << "on the loop, and not before it runs";
  loop.run_once(kPatience);
  EXPECT_TRUE(was_called);
}

TEST(StopWatch, NeedsNoFreeDescriptor) {
  EventLoop loop;
  std::stop_source stop;
  bool was_called = false;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const StopWatch watch(loop, stop.get_token(), [&] { was_called = true; });
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  stop.request_stop();
  loop.run_once(kPatience);
  EXPECT_TRUE(was_called);
}

TEST(StopWatch, DoesNotCallBackOnceItIsGone) {
  for (const bool stopped_before : {true, false}) {
    EventLoop loop;
    std::stop_source stop;
    bool was_called = false;
    {
      const StopWatch watch(loop, stop.get_token(), [&] { was_called = true; });
      if (stopped_before) stop.request_stop();
    }
    stop.request_stop();
    loop.run_once(Duration{0});
    EXPECT_FALSE(was_called) << "stopped " << (stopped_before ? "before" : "after");
  }
}

}  // namespace

}  // namespace trainyard::sys

#include "sys/stop_watch.h"

#include <stop_token>
#include <thread>

#include <sys/resource.h>

#include <gtest/gtest.h>

#include "base/time.h"
#include "sys/event_loop.h"

namespace trainyard::sys {
namespace {

constexpr Duration kPatience{30'000};

TEST(StopWatch, TellsTheLoopOnceWhicheverThreadStops) {
  EventLoop loop;
  std::stop_source stop;
  int told = 0;
  const std::thread::id here = std::this_thread::get_id();
  const StopWatch watch(loop, stop.get_token(), [&] {
    EXPECT_EQ(std::this_thread::get_id(), here);
    ++told;
  });
  const std::jthread other([&stop] { stop.request_stop(); });
  while (told == 0) loop.run_once(kPatience);
  loop.run_once(Duration{0});
  EXPECT_EQ(told, 1);
}

TEST(StopWatch, TellsOfWhatWasStoppedBefore) {
  EventLoop loop;
  std::stop_source stop;
  stop.request_stop();
  bool told = false;
  const StopWatch watch(loop, stop.get_token(), [&] { told = true; });
  EXPECT_FALSE(told) << "on the loop, and not before it runs";
  loop.run_once(kPatience);
  EXPECT_TRUE(told);
}

TEST(StopWatch, IsMadeWhereNoDescriptorIsLeft) {
  EventLoop loop;
  std::stop_source stop;
  bool told = false;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const StopWatch watch(loop, stop.get_token(), [&] { told = true; });
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  stop.request_stop();
  loop.run_once(kPatience);
  EXPECT_TRUE(told);
}

TEST(StopWatch, TellsNothingOnceItIsGone) {
  for (const bool stopped_before : {true, false}) {
    EventLoop loop;
    std::stop_source stop;
    bool told = false;
    {
      const StopWatch watch(loop, stop.get_token(), [&] { told = true; });
      if (stopped_before) stop.request_stop();
    }
    stop.request_stop();
    loop.run_once(Duration{0});
    EXPECT_FALSE(told) << "stopped " << (stopped_before ? "before" : "after");
  }
}

}  // namespace
}  // namespace trainyard::sys

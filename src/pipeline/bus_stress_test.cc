// Many threads that emit, listen, take off and wait at once. Made for the thread sanitizer; the
// counts are asserted everywhere.
#include <atomic>
#include <chrono>
#include <cstddef>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "trainyard/event.h"
#include "trainyard/event_bus.h"

namespace trainyard::pipeline {
namespace {

using namespace std::chrono_literals;

struct Numbered {
  int thread = 0;
  int number = 0;
};
constexpr Event<Numbered> kNumbered{"numbered"};
constexpr Event<int> kNoise{"noise"};

constexpr int kThreads = 4;
constexpr int kEvents = 2'000;

/// Comes and goes while others emit.
void come_and_go(EventBus& bus, EventQueue& queue, const std::atomic<bool>& ending) {
  while (!ending) {
    std::atomic<int> calls = 0;  // On the stack: a call after off() would be seen.
    const Subscription heard = bus.on(kNoise, [&] { ++calls; });
    const Subscription once = bus.once(kNoise, [&] { ++calls; });
    std::atomic<int> queued = 0;
    const Subscription in_queue = bus.on(kNoise, queue, [&] { ++queued; });
    bus.emit(kNoise, 1);
  }
}

void wait_and_clear(EventBus& bus, const std::atomic<bool>& ending) {
  while (!ending) {
    const auto came = bus.wait_for(kNumbered, 50us);
    EXPECT_TRUE(came || came.error() == NoEvent::Deadline);
    bus.off("noi*");
  }
}

void emit_all(EventBus& bus) {
  std::vector<std::jthread> emitters;
  for (int thread = 0; thread < kThreads; ++thread) {
    emitters.emplace_back([&bus, thread] {
      for (int i = 0; i < kEvents; ++i) {
        bus.emit(kNumbered, {.thread = thread, .number = i});
        bus.emit(kNoise, i);
      }
    });
  }
}

TEST(EventBusStress, KeepsTheOrderOfEachThreadAndLosesNothing) {
  std::atomic<int> errors = 0;
  EventBus bus([&](auto, const auto&) { ++errors; });
  EventQueue& queue = bus.make_queue(16);
  std::vector<int> last(kThreads, -1);
  int out_of_order = 0;
  int queued = 0;
  std::atomic<int> inlined = 0;
  const Subscription in_queue = bus.on(kNumbered, queue, [&](const Numbered& it) {
    const auto thread = static_cast<std::size_t>(it.thread);
    if (it.number != last[thread] + 1) ++out_of_order;
    last[thread] = it.number;
    ++queued;
  });
  const Subscription at_once = bus.on(kNumbered, [&] { ++inlined; });

  std::atomic<bool> ending = false;
  std::vector<std::jthread> others;
  others.emplace_back([&] { come_and_go(bus, queue, ending); });
  others.emplace_back([&] { come_and_go(bus, queue, ending); });
  others.emplace_back([&] { wait_and_clear(bus, ending); });
  emit_all(bus);
  ending = true;
  others.clear();
  EXPECT_EQ(bus.stop(60s), 0U);
  EXPECT_EQ(queued, kThreads * kEvents);
  EXPECT_EQ(inlined, kThreads * kEvents);
  EXPECT_EQ(out_of_order, 0);
  EXPECT_EQ(errors, 0);
}

}  // namespace
}  // namespace trainyard::pipeline

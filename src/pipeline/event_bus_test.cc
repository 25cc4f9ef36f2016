#include "trainyard/event_bus.h"

#include <array>
#include <atomic>
#include <latch>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "pipeline/bus_remote.h"
#include "pipeline/bus_state.h"

namespace trainyard::pipeline {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

struct JobDone {
  int id = 0;
  std::string text;
};
constexpr Event<JobDone> kJobDone{"job.done"};
constexpr Event<int> kNumber{"number"};
constexpr Event<> kSignal{"signal"};

std::string what(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& known) {
    return known.what();
  }
}

/// A bus that remembers what went wrong.
struct Bus {
  std::vector<std::string> errors;
  EventBus bus{[this](std::string_view event, const std::exception_ptr& error) {
    errors.push_back(std::string(event) + ": " + what(error));
  }};
};

TEST(EventBus, CallsListenersInOrderAtOnceOnTheThreadThatEmits) {
  EventBus bus;
  std::string order;
  const Subscription a = bus.on(kJobDone, [&](const JobDone& job) { order += "a" + job.text; });
  const Subscription b = bus.on(kJobDone, [&] { order += "b"; });
  const Subscription other = bus.on(kNumber, [&](int) { order += "never"; });
  EXPECT_EQ(bus.emit(kJobDone, {.id = 1, .text = "!"}), 2U);
  EXPECT_EQ(order, "a!b");
}

TEST(EventBus, TellsNobodyWhenNobodyListens) {
  EventBus bus;
  EXPECT_EQ(bus.emit(kNumber, 1), 0U);
}

TEST(EventBus, CarriesNothingWhereThereIsNothingToSay) {
  EventBus bus;
  int calls = 0;
  const Subscription heard = bus.on(kSignal, [&] { ++calls; });
  bus.emit(kSignal);
  EXPECT_EQ(calls, 1);
}

TEST(EventBus, CarriesJsonUnderPlainNames) {
  EventBus bus;
  std::vector<Json> seen;
  const Subscription heard = bus.on("job.done", [&](const Json& job) { seen.push_back(job); });
  const Subscription once = bus.once("job.done", [&](const Json& job) { seen.push_back(job); });
  EXPECT_EQ(bus.emit("job.done", {{"id", 7}}), 2U);
  EXPECT_EQ(bus.emit("job.done", nullptr), 1U);
  EXPECT_THAT(seen, ElementsAre(Json{{"id", 7}}, Json{{"id", 7}}, nullptr));
}

TEST(EventBus, WaitsForJsonUnderPlainNames) {
  EventBus bus;
  EventQueue& queue = bus.make_queue();
  Json seen;
  const Subscription once = bus.once("done", queue, [&](const Json& it) { seen = it; });
  auto pending = bus.expect("done");
  bus.emit("done", 7);
  EXPECT_EQ(pending.wait(0s).value(), 7);
  EXPECT_EQ(bus.wait_for("done", 1ns).error(), NoEvent::Deadline);
  EXPECT_EQ(bus.stop(60s), 0U);
  EXPECT_EQ(seen, 7);
}

TEST(EventBus, TakesOffAnEventWhoseNameLooksLikeAPattern) {
  EventBus bus;
  const Subscription a = bus.on("a[1]", [](const Json&) {});
  const Subscription b = bus.on("a1", [](const Json&) {});
  EXPECT_EQ(bus.off("a[1]"), 2U);
}

struct Fragile {
  Fragile() = default;
  Fragile(const Fragile&) { throw std::runtime_error("cannot copy"); }
  Fragile& operator=(const Fragile&) = delete;
};
constexpr Event<Fragile> kFragile{"fragile"};

TEST(EventQueue, TellsOfAnEventThatCannotBeCopied) {
  Bus it;
  EventQueue& queue = it.bus.make_queue();
  int calls = 0;
  const Subscription queued = it.bus.on(kFragile, queue, [&] { ++calls; });
  const Subscription at_once = it.bus.on(kFragile, [&] { ++calls; });
  EXPECT_EQ(it.bus.emit(kFragile, {}), 1U);
  EXPECT_EQ(it.bus.stop(60s), 0U);
  EXPECT_EQ(calls, 1);
  EXPECT_THAT(it.errors, ElementsAre("fragile: cannot copy"));
}

TEST(EventBus, TakesNamesLiterally) {
  EventBus bus;
  int calls = 0;
  const Subscription heard = bus.on("a[1]*", [&](const Json&) { ++calls; });
  const Subscription once = bus.once("a[1]*", [&](const Json&) { ++calls; });
  bus.emit("a1", nullptr);
  bus.emit("a[1]*", nullptr);
  bus.emit("a[1]*", nullptr);
  EXPECT_EQ(calls, 3);
}

TEST(EventBus, CallsAListenerTwiceThatIsThereTwice) {
  EventBus bus;
  int calls = 0;
  const auto listener = [&] { ++calls; };
  Subscription one = bus.on(kSignal, listener);
  const Subscription two = bus.on(kSignal, listener);
  bus.emit(kSignal);
  EXPECT_EQ(calls, 2);
  one.off();
  bus.emit(kSignal);
  EXPECT_EQ(calls, 3);
}

TEST(Subscription, TakesItsListenerOffWhenItEnds) {
  EventBus bus;
  int calls = 0;
  {
    const Subscription heard = bus.on(kSignal, [&] { ++calls; });
    bus.emit(kSignal);
  }
  EXPECT_EQ(bus.emit(kSignal), 0U);
  EXPECT_EQ(calls, 1);
}

TEST(Subscription, MayBeDetachedAndMayOutliveTheBus) {
  Subscription outlives;
  int calls = 0;
  {
    EventBus bus;
    bus.on(kSignal, [&] { ++calls; }).detach();
    outlives = bus.on(kSignal, [&] { ++calls; });
    bus.emit(kSignal);
  }
  EXPECT_EQ(calls, 2);
  outlives.off();
}

TEST(Subscription, WaitsForACallThatGoesOn) {
  EventBus bus;
  std::latch in_it(1);
  std::atomic<bool> may_go = false;
  std::atomic<bool> done = false;
  Subscription heard = bus.on(kSignal, [&] {
    in_it.count_down();
    may_go.wait(false);
    done = true;
  });
  std::jthread emitter([&] { bus.emit(kSignal); });
  in_it.wait();
  std::jthread releaser([&] {
    may_go = true;
    may_go.notify_all();
  });
  heard.off();
  EXPECT_TRUE(done);
}

TEST(Subscription, OfAOnceThatWasNotUsedEnds) {
  EventBus bus;
  int calls = 0;
  {
    const Subscription heard = bus.once(kSignal, [&] { ++calls; });
  }
  bus.emit(kSignal);
  EXPECT_EQ(calls, 0);
}

TEST(EventBus, TakesOffAllListenersOfNamesThatMatch) {
  EventBus bus;
  const Subscription a = bus.on("job.done", [](const Json&) {});
  const Subscription b = bus.on("job.done", [](const Json&) {});
  const Subscription c = bus.on("job.begun", [](const Json&) {});
  const Subscription d = bus.on("other", [](const Json&) {});
  EXPECT_EQ(bus.off("job.d*"), 2U);
  EXPECT_EQ(bus.emit("job.done", nullptr), 0U);
  EXPECT_EQ(bus.emit("job.begun", nullptr), 1U);
  EXPECT_EQ(bus.off("[jo]*"), 2U);
  EXPECT_EQ(bus.off("*"), 0U);
}

TEST(EventBus, DoesNotCallAListenerThatIsAddedOrTakenOffInThatEmission) {
  EventBus bus;
  std::string order;
  Subscription added;
  Subscription second;
  const Subscription first = bus.on(kSignal, [&] {
    order += "first ";
    added = bus.on(kSignal, [&] { order += "added "; });
    second.off();
  });
  second = bus.on(kSignal, [&] { order += "second "; });
  bus.emit(kSignal);
  EXPECT_EQ(order, "first ");
}

TEST(EventBus, LetsAListenerTakeItselfOffAndEmit) {
  EventBus bus;
  int calls = 0;
  Subscription heard;
  heard = bus.on(kNumber, [&](int value) {
    ++calls;
    if (value == 3) return heard.off();
    bus.emit(kNumber, value + 1);
  });
  bus.emit(kNumber, 0);
  bus.emit(kNumber, 0);
  EXPECT_EQ(calls, 4);
}

TEST(EventBus, CallsAOnceExactlyOnceHoweverManyThreadsEmit) {
  for (int round = 0; round < 200; ++round) {
    EventBus bus;
    std::atomic<int> calls = 0;
    std::atomic<std::size_t> told = 0;
    const Subscription heard = bus.once(kSignal, [&] { ++calls; });
    std::latch begin(3);
    std::vector<std::jthread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        begin.arrive_and_wait();
        told += bus.emit(kSignal);
      });
    }
    threads.clear();
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(told, 1U);
  }
}

TEST(EventBus, TellsAtOnceWhatAListenerThrowsAndCallsTheOthers) {
  Bus it;
  int calls = 0;
  const Subscription bad = it.bus.on(kNumber, [](int) { throw std::runtime_error("boom"); });
  const Subscription good = it.bus.on(kNumber, [&](int) { ++calls; });
  EXPECT_EQ(it.bus.emit(kNumber, 1), 2U);
  EXPECT_EQ(calls, 1);
  EXPECT_THAT(it.errors, ElementsAre("number: boom"));
}

TEST(EventBus, PrintsWhatAListenerThrowsWithItsCausesWhereNobodyTakesErrors) {
  EventBus bus;
  const Subscription bad = bus.on(kNumber, [](int) {
    try {
      throw std::out_of_range("row 7");
    } catch (...) {
      std::throw_with_nested(std::runtime_error("no batch"));
    }
  });
  testing::internal::CaptureStderr();
  bus.emit(kNumber, 1);
  EXPECT_THAT(
      testing::internal::GetCapturedStderr(),
      testing::AllOf(testing::StartsWith("trainyard: event 'number': "),
                     testing::EndsWith(": no batch\nbecause of std::out_of_range: row 7\n")));
}

TEST(EventBus, TellsWhenAListenerTakesSomethingElse) {
  Bus it;
  int calls = 0;
  constexpr Event<double> kOfDoubles{"number"};
  const Subscription heard = it.bus.on(kOfDoubles, [&](double) { ++calls; });
  EXPECT_EQ(it.bus.emit(kNumber, 1), 0U);
  EXPECT_EQ(calls, 0);
  EXPECT_THAT(it.errors, ElementsAre("number: carries int, and a listener takes double"));
}

TEST(EventBus, WaitsForAnEvent) {
  EventBus bus;
  auto pending = bus.expect(kJobDone);
  std::jthread emitter([&] { bus.emit(kJobDone, {.id = 7, .text = "x"}); });
  const auto done = pending.wait(60s);
  ASSERT_TRUE(done);
  EXPECT_EQ(done->id, 7);
  EXPECT_EQ(pending.wait(0s)->id, 7) << "it has come";
}

TEST(Timeout, IsForEverWhereADurationIsTooLongToBeAdded) {
  constexpr std::chrono::hours kYear(24 * 365);
  EXPECT_EQ(Timeout(std::chrono::nanoseconds::max()).time(), kYear);
  EXPECT_EQ(Timeout(std::chrono::milliseconds::max()).time(), kYear);
  EXPECT_EQ(Timeout(std::chrono::hours::max()).milliseconds(), kYear);
  EXPECT_EQ(Timeout(std::chrono::duration<double>::max()).time(), kYear);
  EXPECT_EQ(Timeout(std::chrono::hours::min()).time(), 0s);
  EXPECT_EQ(Timeout(1'500us).time(), 1'500us);
  EXPECT_EQ(Timeout(1'500us).milliseconds(), 2ms) << "no less than it is";
  EventBus bus;
  auto pending = bus.expect(kNumber);
  std::jthread emitter([&] { bus.emit(kNumber, 1); });
  EXPECT_EQ(pending.wait(std::chrono::hours::max()), 1);
}

TEST(EventBus, KeepsWhatCameBeforeAnybodyWaited) {
  EventBus bus;
  auto pending = bus.expect(kNumber);
  bus.emit(kNumber, 1);
  bus.emit(kNumber, 2);
  EXPECT_EQ(pending.wait(0s), 1);
}

TEST(EventBus, SaysWhyNoEventCame) {
  EventBus bus;
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(bus.wait_for(kNumber, 1ms).error(), NoEvent::Deadline);
  EXPECT_EQ(bus.wait_for(kNumber, std::chrono::nanoseconds::max(), stop.get_token()).error(),
            NoEvent::Stopped);
  EXPECT_EQ(bus.emit(kNumber, 1), 0U) << "who waited listens no more";
  auto pending = bus.expect(kNumber);
  std::jthread stopper([&] { bus.stop(); });
  EXPECT_EQ(pending.wait(60s).error(), NoEvent::BusStopped);
  EXPECT_EQ(to_text(NoEvent::BusStopped), "bus stopped");
}

TEST(EventBus, WakesWhoWaitsWhenItIsToStop) {
  EventBus bus;
  std::stop_source stop;
  std::jthread stopper([&] { stop.request_stop(); });
  EXPECT_EQ(bus.wait_for(kNumber, 60s, stop.get_token()).error(), NoEvent::Stopped);
  EXPECT_EQ(bus.wait_for(kNumber, stop.get_token()).error(), NoEvent::Stopped);
  EXPECT_EQ(bus.wait_for("any.name", stop.get_token()).error(), NoEvent::Stopped);
}

TEST(EventQueue, CallsItsListenersOnItsThreadInOrder) {
  EventBus bus;
  EventQueue& queue = bus.make_queue();
  std::vector<std::string> seen;
  std::thread::id thread;
  const Subscription a = bus.on(kNumber, queue, [&](int value) {
    seen.push_back(std::to_string(value));
    thread = std::this_thread::get_id();
  });
  const Subscription b =
      bus.on(kJobDone, queue, [&](const JobDone& job) { seen.push_back(job.text); });
  const std::string text(1'000, 'x');
  std::vector<std::string> wanted;
  for (int i = 0; i < 5'000; ++i) {
    bus.emit(kNumber, i);
    bus.emit(kJobDone, {.id = i, .text = text});
    wanted.push_back(std::to_string(i));
    wanted.push_back(text);
  }
  EXPECT_EQ(bus.stop(60s), 0U);
  EXPECT_EQ(seen, wanted);
  EXPECT_NE(thread, std::this_thread::get_id());
}

TEST(EventQueue, TakesWhatIsLargeAndStrictlyAligned) {
  struct alignas(64) Large {
    std::array<double, 100> values;
  };
  constexpr Event<Large> kLarge{"large"};
  EventBus bus;
  EventQueue& queue = bus.make_queue();
  double sum = 0;
  const Subscription heard = bus.on(kLarge, queue, [&](const Large& it) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&it) % 64, 0U);
    sum += it.values[99];
  });
  Large payload{};
  payload.values[99] = 2.5;
  bus.emit(kLarge, payload);
  bus.emit(kLarge, payload);
  EXPECT_EQ(bus.stop(60s), 0U);
  EXPECT_EQ(sum, 5);
}

TEST(EventQueue, HoldsSoManyEventsAndThenHasWhoEmitsWait) {
  EventBus bus;
  EventQueue& queue = bus.make_queue(2);
  std::latch in_it(1);
  std::atomic<bool> may_go = false;
  std::vector<int> seen;
  const Subscription heard = bus.on(kNumber, queue, [&](int value) {
    if (value == 0) {
      in_it.count_down();
      may_go.wait(false);
    }
    seen.push_back(value);
  });
  bus.emit(kNumber, 0);
  in_it.wait();
  bus.emit(kNumber, 1);  // With the one that it is in, two: it is full.
  std::jthread emitter([&] { bus.emit(kNumber, 2); });
  may_go = true;
  may_go.notify_all();
  emitter.join();
  EXPECT_EQ(bus.stop(60s), 0U);
  EXPECT_THAT(seen, ElementsAre(0, 1, 2));
}

TEST(EventQueue, TellsWhatItsOwnListenerEmitsIntoItWhenItIsFull) {
  Bus it;
  EventQueue& queue = it.bus.make_queue(4);  // With the one that it is in.
  std::vector<int> seen;
  std::latch emitted(1);
  const Subscription heard = it.bus.on(kNumber, queue, [&](int value) {
    seen.push_back(value);
    if (value != 0) return;
    for (int i = 1; i < 6; ++i) it.bus.emit(kNumber, i);
    emitted.count_down();
  });
  it.bus.emit(kNumber, 0);
  emitted.wait();
  EXPECT_EQ(it.bus.stop(60s), 0U);
  EXPECT_THAT(seen, ElementsAre(0, 1, 2, 3));
  const std::string full = "number: found its queue full, in a listener of that queue";
  EXPECT_THAT(it.errors, ElementsAre(full, full));
}

TEST(EventQueue, CallsAOnceExactlyOnce) {
  EventBus bus;
  EventQueue& queue = bus.make_queue();
  int calls = 0;
  const Subscription heard = bus.once(kNumber, queue, [&](int value) { calls += value; });
  EXPECT_EQ(bus.emit(kNumber, 1), 1U);
  EXPECT_EQ(bus.emit(kNumber, 10), 0U);
  EXPECT_EQ(bus.stop(60s), 0U);
  EXPECT_EQ(calls, 1);
}

TEST(EventQueue, CallsNobodyWhoWasTakenOffWhileHisEventWaited) {
  EventBus bus;
  EventQueue& queue = bus.make_queue();
  std::latch emitted(1);
  int calls = 0;
  const Subscription first = bus.on(kSignal, queue, [&] { emitted.wait(); });
  Subscription second = bus.on(kSignal, queue, [&] { ++calls; });
  bus.emit(kSignal);
  second.off();
  emitted.count_down();
  EXPECT_EQ(bus.stop(60s), 0U);
  EXPECT_EQ(calls, 0);
}

TEST(EventBusStop, TellsWhatWasLeftAtTheDeadline) {
  std::latch in_it(1);
  std::latch told(1);
  std::atomic<bool> may_go = false;
  std::vector<std::string> errors;
  EventBus bus([&](std::string_view event, const std::exception_ptr& error) {
    errors.push_back(std::string(event) + ": " + what(error));
    told.count_down();
  });
  EventQueue& queue = bus.make_queue();
  const Subscription heard = bus.on(kNumber, queue, [&](int) {
    in_it.count_down();
    may_go.wait(false);
  });
  bus.emit(kNumber, 0);
  in_it.wait();
  for (int i = 0; i < 3; ++i) bus.emit(kNumber, i);
  EXPECT_EQ(bus.stop(1ms), 4U) << "with the one that it is in";
  EXPECT_EQ(bus.stop(60s), 0U) << "it has stopped";
  may_go = true;
  may_go.notify_all();
  told.wait();  // By its thread, which delivers no more, and ends.
  EXPECT_THAT(errors,
              ElementsAre("number: 3 of them waited in a queue when the time to stop was over"));
}

TEST(EventBusStop, TellsWhatIsEmittedAfterwards) {
  Bus it;
  int calls = 0;
  const Subscription heard = it.bus.on(kNumber, [&](int) { ++calls; });
  it.bus.stop();
  EXPECT_EQ(it.bus.emit(kNumber, 1), 0U);
  EXPECT_EQ(calls, 0);
  EXPECT_THAT(it.errors, ElementsAre("number: was emitted after the bus had stopped"));
}

TEST(EventBusStop, IsNoErrorForAnEventThatTheUserDoesNotEmit) {
  Bus it;
  int calls = 0;
  const Subscription heard = it.bus.on(kNumber, [&](int) { ++calls; });
  const auto state = detail::BusAccess::state_of(it.bus);
  const int payload = 1;
  const detail::BusState::Emission emission{
      .name = kNumber.name, .type = detail::kPayloadType<int>, .payload = &payload};
  state->notify(emission);
  it.bus.stop();
  state->notify(emission);
  EXPECT_EQ(calls, 1);
  EXPECT_THAT(it.errors, ElementsAre());
}

TEST(EventBusStop, MayBeDoneByAListener) {
  Bus it;
  const Subscription heard = it.bus.on(kSignal, [&] { it.bus.stop(60s); });
  EXPECT_EQ(it.bus.emit(kSignal), 1U);
  EXPECT_EQ(it.bus.emit(kSignal), 0U);
  EXPECT_THAT(it.errors, ElementsAre("signal: was emitted after the bus had stopped"));
}

TEST(EventBusStop, ByAListenerOfAQueueStillDeliversWhatWaits) {
  EventBus bus;
  EventQueue& queue = bus.make_queue();
  std::latch emitted(1);
  std::latch heard(3);
  const Subscription listener = bus.on(kNumber, queue, [&](int value) {
    emitted.wait();
    if (value == 0) {
      EXPECT_EQ(bus.stop(60s), 0U);
    }
    heard.count_down();
  });
  for (int i = 0; i < 3; ++i) bus.emit(kNumber, i);
  emitted.count_down();
  heard.wait();
}

}  // namespace
}  // namespace trainyard::pipeline

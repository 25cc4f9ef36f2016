// What pipelines and events cost, beside the same written by hand: in one process, in turns.
//
// usage: pipeline_core steps|bus|wake|async SCALE
// SCALE: how much of each round is done, 1 in earnest. Prints one JSON object a round of a figure's
// costs: nanoseconds, of a step, an event or an iteration.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <ratio>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "trainyard/event.h"
#include "trainyard/event_bus.h"
#include "trainyard/pipeline.h"

namespace trainyard {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr int kRounds = 9;
constexpr std::size_t kSteps = 16;
/// How much of each round is done.
struct Scale {
  double share = 1;
  [[nodiscard]] std::size_t of(double count) const {
    return std::max<std::size_t>(1, static_cast<std::size_t>(count * share));
  }
};

void expect(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(what);
}

struct Train : Context {
  long count = 0;
  static constexpr auto kept = keep<&Train::count>;
};

/// What the compiler cannot leave out, and costs next to nothing.
void touch(Train& context) { asm volatile("" : "+m"(context.count)); }

struct Object {
  void forward(Train& context) { touch(context); }
  void backward(Train& context) { touch(context); }
};

double nanoseconds(Clock::duration took) {
  return std::chrono::duration<double, std::nano>(took).count();
}

/// The time of one of `count`.
template <class F>
double time_of_each(std::size_t count, F&& act) {
  const auto began = Clock::now();
  act(count);
  return nanoseconds(Clock::now() - began) / static_cast<double>(count);
}

using Costs = std::map<std::string, double>;

/// Each figure once a round, so that whatever else the machine does hits all alike.
void measure(const std::vector<std::pair<std::string, std::function<double()>>>& figures) {
  for (int round = 0; round < kRounds; ++round) {
    std::string text;
    for (const auto& [name, figure] : figures) {
      text += fmt::format(R"({}"{}": {:.3f})", text.empty() ? "" : ", ", name, figure());
    }
    fmt::print("{{{}}}\n", text);
  }
}

double run(Pipeline<Train>& loop, std::size_t iterations) {
  const double each = time_of_each(iterations, [&](std::size_t count) {
    expect(static_cast<bool>(loop.run({.max_steps = count})), "a run that does not fail");
  });
  return each / kSteps;
}

/// A way there and back over functions, as one would write it for one program.
struct ByHand {
  std::vector<std::function<void(Train&)>> forward;
  std::vector<std::function<void(Train&)>> backward;

  double run(std::size_t iterations) {
    Train context;
    const double each = time_of_each(iterations, [&](std::size_t count) {
      for (std::size_t i = 0; i < count; ++i) {
        for (const auto& half : forward) half(context);
        for (std::size_t left = backward.size(); left > 0; --left) backward[left - 1](context);
        Train next;
        next.count = context.count;
        next.total_step = context.total_step + 1;
        context = std::move(next);
      }
    });
    return each / kSteps;
  }
};

void steps(Scale scale) {
  Pipeline<Train> plain;
  Pipeline<Train> returning;
  Pipeline<Train> object;
  Pipeline<Train> coroutine;
  std::array<Pipeline<Train>, 2> with_lock;  // Beside others, and alone.
  std::array<Pipeline<Train>, 2> with_nested;
  ByHand by_hand;
  ByHand by_hand_plain;
  for (std::size_t i = 0; i < kSteps; ++i) {
    plain.use([](Train& context) { touch(context); });
    returning.use([](Train& context) {
      touch(context);
      return [&context] { touch(context); };
    });
    object.use("object", Object{});
    coroutine.use([](Train& context) -> Step {
      touch(context);
      co_yield after;
      touch(context);
    });
    with_lock[0].use([](Train& context) { touch(context); });
    with_nested[0].use([](Train& context) { touch(context); });
    by_hand.forward.emplace_back([](Train& context) { touch(context); });
    by_hand.backward.emplace_back([](Train& context) { touch(context); });
    by_hand_plain.forward.emplace_back([](Train& context) { touch(context); });
  }
  for (Pipeline<Train>& loop : with_lock) {
    loop.use([](Train& context) { touch(context); }, {.lock = shared_lock});
  }
  for (Pipeline<Train>& loop : with_nested) {
    const auto nested = loop.nested("nested", [](Train& context) { touch(context); });
    loop.use([nested](Train& context) { nested(context); });
  }
  const std::size_t count = scale.of(300'000);
  measure(
      {{"plain", [&] { return run(plain, count); }},
       {"returning", [&] { return run(returning, count); }},
       {"object", [&] { return run(object, count); }},
       {"coroutine", [&] { return run(coroutine, count); }},
       {"beside_lock", [&] { return run(with_lock[0], count) - run(with_lock[1], count); }},
       {"beside_nested", [&] { return run(with_nested[0], count) - run(with_nested[1], count); }},
       {"lock", [&] { return run(with_lock[1], count) * kSteps; }},
       {"nested", [&] { return run(with_nested[1], count) * kSteps; }},
       {"by_hand", [&] { return by_hand.run(count); }},
       {"by_hand_plain", [&] { return by_hand_plain.run(count); }}});
}

struct JobDone {
  int id = 0;
  double loss = 0;
};
constexpr Event<JobDone> kJobDone{"job.done"};

double emit_at_once(std::size_t count) {
  EventBus bus;
  long sum = 0;
  const Subscription heard = bus.on(kJobDone, [&](const JobDone& job) { sum += job.id; });
  const double each = time_of_each(count, [&](std::size_t events) {
    for (std::size_t i = 0; i < events; ++i) bus.emit(kJobDone, {.id = 1, .loss = 0});
  });
  expect(sum == static_cast<long>(count), "all events");
  return each;
}

/// A counter that its thread does not share a cache line for.
struct alignas(128) Sum {
  long value = 0;
};

/// From the first emission to the last delivery.
double emit_queued(std::size_t count) {
  EventBus bus;
  EventQueue& queue = bus.make_queue();
  const auto sum = std::make_unique<Sum>();
  const Subscription heard =
      bus.on(kJobDone, queue, [&sum = sum->value](const JobDone& job) { sum += job.id; });
  const double each = time_of_each(count, [&](std::size_t events) {
    for (std::size_t i = 0; i < events; ++i) bus.emit(kJobDone, {.id = 1, .loss = 0});
    expect(bus.stop(60s) == 0, "an empty queue");
  });
  expect(sum->value == static_cast<long>(count), "all events");
  return each;
}

void bus(Scale scale) {
  measure({{"emit", [=] { return emit_at_once(scale.of(2e6)); }},
           {"queued", [=] { return emit_queued(scale.of(2e6)); }}});
}

/// Has another thread call `wake`, when this one has been waiting for a while, and takes the time
/// to the end of the wait. The median.
double time_to_wake(std::size_t times, const std::function<void()>& arm,
                    const std::function<void()>& wait, const std::function<void()>& wake) {
  std::atomic<std::size_t> round = 0;
  std::atomic<Clock::rep> called = 0;
  std::jthread caller([&] {
    for (std::size_t i = 1; i <= times; ++i) {
      round.wait(i - 1);
      std::this_thread::sleep_for(100us);
      called = Clock::now().time_since_epoch().count();
      wake();
    }
  });
  std::vector<double> took;
  for (std::size_t i = 1; i <= times; ++i) {
    arm();
    round = i;
    round.notify_one();
    wait();
    took.push_back(nanoseconds(Clock::now().time_since_epoch() - Clock::duration(called)));
  }
  std::ranges::nth_element(took, took.begin() + static_cast<std::ptrdiff_t>(took.size() / 2));
  return took[took.size() / 2];
}

double wake_of_bus(std::size_t times) {
  EventBus bus;
  std::optional<Expectation<JobDone>> pending;
  return time_to_wake(
      times, [&] { pending = bus.expect(kJobDone); },
      [&] { expect(pending->wait(60s).has_value(), "an event"); },
      [&] { bus.emit(kJobDone, {.id = 1, .loss = 0}); });
}

double wake_of_condition(std::size_t times) {
  std::mutex mutex;
  std::condition_variable condition;
  bool there = false;
  return time_to_wake(
      times, [&] { there = false; },
      [&] {
        std::unique_lock lock(mutex);
        condition.wait(lock, [&] { return there; });
      },
      [&] {
        const std::scoped_lock lock(mutex);
        there = true;
        condition.notify_all();
      });
}

void wake(Scale scale) {
  measure({{"wait_for", [=] { return wake_of_bus(scale.of(1'000)); }},
           {"condition_variable", [=] { return wake_of_condition(scale.of(1'000)); }}});
}

double iterations(Pipeline<Train>& loop, std::size_t count) {
  return time_of_each(count, [&](std::size_t times) {
    expect(static_cast<bool>(loop.run({.max_steps = times})), "a run that does not fail");
  });
}

double single_runs(Pipeline<Train>& loop, std::size_t count) {
  return time_of_each(count, [&](std::size_t times) {
    for (std::size_t i = 0; i < times; ++i) {
      expect(static_cast<bool>(loop.run({.max_steps = 1})), "a run that does not fail");
    }
  });
}

void async(Scale scale) {
  Pipeline<Train> apart({.async = true, .n_async_workers = 3});
  Pipeline<Train> in_order({.async = true, .n_async_workers = 3});
  Pipeline<Train> linear;
  for (std::size_t i = 0; i < kSteps; ++i) {
    apart.use([](Train&) {}, {.writes = {nothing}});
    in_order.use([](Train&) {});
    linear.use([](Train&) {});
  }
  measure({{"apart", [&] { return iterations(apart, scale.of(50'000)); }},
           {"in_order", [&] { return iterations(in_order, scale.of(50'000)); }},
           {"single_run", [&] { return single_runs(linear, scale.of(500'000)); }}});
}

}  // namespace
}  // namespace trainyard

int main(int count, char** words) {
  const std::map<std::string_view, void (*)(trainyard::Scale)> figures{{"steps", trainyard::steps},
                                                                       {"bus", trainyard::bus},
                                                                       {"wake", trainyard::wake},
                                                                       {"async", trainyard::async}};
  const auto figure = figures.find(count == 3 ? words[1] : "");
  if (figure == figures.end()) {
    fmt::print(stderr, "usage: pipeline_core steps|bus|wake|async SCALE\n");
    return 2;
  }
  try {
    figure->second({.share = std::strtod(words[2], nullptr)});
  } catch (const std::exception& error) {
    fmt::print(stderr, "pipeline_core: expected {}\n", error.what());
    return 1;
  }
  return 0;
}

// Steps side by side: the same results as one after another, whatever the steps.
#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <random>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pipeline/test_loop.h"
#include "trainyard/event.h"
#include "trainyard/event_bus.h"
#include "trainyard/pipeline.h"

namespace trainyard::pipeline {
namespace {

constexpr Resource kReplay{"replay buffer"};
constexpr Resource kOrder{"order"};
constexpr Resource kDropped{"dropped"};
constexpr Resource kX{"x"};
constexpr Resource kA{"a"};
constexpr Resource kB{"b"};

/// Eight numbers that steps read and write: any lost or reordered write changes what comes out.
struct Numbers : Context {
  std::uint64_t a = 1, b = 2, c = 3, d = 4;
  std::uint64_t e = 5, f = 6, g = 7, h = 8;
  static constexpr auto kept = keep<&Numbers::a, &Numbers::b, &Numbers::c, &Numbers::d>;
};
constexpr std::array<std::uint64_t Numbers::*, 8> kNumbers{&Numbers::a, &Numbers::b, &Numbers::c,
                                                           &Numbers::d, &Numbers::e, &Numbers::f,
                                                           &Numbers::g, &Numbers::h};

/// The work of a random step: it mixes its inputs into its outputs, in one half or in both.
struct Mixing {
  std::vector<std::size_t> reads;
  std::vector<std::size_t> writes;
  std::uint64_t salt = 0;
  bool says_so = true;  ///< It names what it touches.
  bool two_way = false;
  bool locked = false;
  bool nested = false;    ///< Called by a step that says what it touches.
  std::size_t group = 1;  ///< So many from this one on are one step.

  void mix(Numbers& context, std::uint64_t with) const {
    std::uint64_t sum = salt + with;
    for (const std::size_t i : reads) sum = (sum * 31) + context.*kNumbers.at(i);
    for (const std::size_t i : writes) {
      sum = (sum ^ (sum >> 29U)) * 0xbf58476d1ce4e5b9ULL;
      context.*kNumbers.at(i) = (context.*kNumbers.at(i) * 3) + sum;
    }
  }
};

std::vector<Mixing> random_steps(std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](std::size_t limit) { return random() % limit; };
  std::vector<Mixing> steps(1 + below(80));
  for (Mixing& step : steps) {
    for (std::size_t i = below(3); i > 0; --i) step.reads.push_back(below(8));
    for (std::size_t i = 1 + below(2); i > 0; --i) step.writes.push_back(below(8));
    step.salt = random();
    step.says_so = below(8) != 0;
    step.two_way = below(2) == 0;
    step.locked = below(6) == 0;
    step.nested = below(6) == 0;
    step.group = below(5) == 0 ? 3 : 1;
  }
  return steps;
}

StepOptions<Numbers> options_of(const Mixing& step) {
  StepOptions<Numbers> options;
  if (step.says_so) {
    for (const std::size_t i : step.reads) options.reads.emplace_back(kNumbers.at(i));
    for (const std::size_t i : step.writes) options.writes.emplace_back(kNumbers.at(i));
  }
  if (step.locked) options.lock = shared_lock;
  return options;
}

AnyStep<Numbers> make_step(Pipeline<Numbers>& loop, const Mixing& step) {
  const auto both = [step](Numbers& context) -> Step {
    step.mix(context, 1);
    co_yield after;
    step.mix(context, 2);
  };
  if (step.nested) {
    const auto nested = loop.nested("nested", both);
    return named("", [nested](Numbers& context) { nested(context); }, options_of(step));
  }
  if (step.two_way) return named("", both, options_of(step));
  return named(
      "", [step](Numbers& context) { step.mix(context, context.total_step); }, options_of(step));
}

/// One by one, or a few as a group.
void use_all(Pipeline<Numbers>& loop, const std::vector<Mixing>& steps) {
  for (std::size_t i = 0; i < steps.size();) {
    std::vector<AnyStep<Numbers>> group;
    const std::size_t end = std::min(steps.size(), i + steps[i].group);
    for (; i < end; ++i) group.push_back(make_step(loop, steps[i]));
    if (group.size() == 1) {
      loop.use(std::move(group.front()));
    } else {
      loop.use(serial(std::move(group)));
    }
  }
}

std::vector<std::uint64_t> result_of(const std::vector<Mixing>& steps, PipelineOptions options) {
  Pipeline<Numbers> loop(std::move(options));
  use_all(loop, steps);
  EXPECT_TRUE(loop.run({.max_steps = 5}));
  std::vector<std::uint64_t> numbers;
  for (const auto number : kNumbers) numbers.push_back(loop.context().*number);
  return numbers;
}

TEST(Async, HasTheResultsOfOneAfterAnother) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    const std::vector<Mixing> steps = random_steps(seed);
    EXPECT_EQ(result_of(steps, {.async = true, .n_async_workers = static_cast<int>(seed % 4)}),
              result_of(steps, {}))
        << "seed " << seed;
  }
}

TEST(Async, RunsWhatDoesNotConflictAtTheSameTime) {
  Pipeline<Numbers> loop({.async = true, .n_async_workers = 2});
  std::barrier meet(3);  // All three must be in it at once.
  const auto part = [&](Numbers&) { meet.arrive_and_wait(); };
  loop.use(part, {.reads = {&Numbers::a}, .writes = {&Numbers::b}})
      .use(part, {.reads = {&Numbers::a}, .writes = {&Numbers::c, kReplay}})
      .use(part, {.writes = {nothing}});
  EXPECT_TRUE(loop.run({.max_steps = 20}));
}

TEST(Async, KeepsStepsInOrderThatTouchTheSame) {
  std::string order;
  Pipeline<Numbers> loop({.async = true});
  const auto write = [&](const char* name) { return [&order, name](Numbers&) { order += name; }; };
  loop.use(write("a"), {.writes = {kOrder}})
      .use([](Numbers&) {}, {.writes = {&Numbers::b}})
      .use(write("b"), {.reads = {kOrder}, .writes = {kOrder}})
      .use(write("c"))
      .use(write("d"), {.writes = {kOrder}})
      .use(serial(named<Numbers>("e", write("e"), {.writes = {kOrder}}),
                  named<Numbers>("f", write("f"), {.reads = {&Numbers::a}, .writes = {kOrder}})));
  EXPECT_TRUE(loop.run({.max_steps = 100}));
  std::string wanted;
  for (int i = 0; i < 100; ++i) wanted += "abcdef";
  EXPECT_EQ(order, wanted);
}

TEST(Async, GoesBackInReverseOrderWhereStepsConflict) {
  std::string order;
  Pipeline<Loop> loop({.async = true});
  loop.use(both(order, "a"), {.writes = {kOrder}})
      .use(both(order, "b"))
      .use(both(order, "c"), {.writes = {kOrder}});
  EXPECT_TRUE(loop.run({.max_steps = 1}));
  EXPECT_EQ(order, "a b c c' b' a' ");
}

TEST(Async, RunsAllBeforeAStepThatFailsAndNothingThatFollowsIt) {
  for (int i = 0; i < 50; ++i) {
    std::atomic<int> before = 0;
    std::atomic<int> later = 0;
    std::string dropped;
    Pipeline<Loop> loop({.async = true});
    loop.use(guarded(dropped, "a"), {.writes = {kDropped}})
        .use([&](Loop&) { ++before; }, {.writes = {nothing}})
        .use("fails", [](Loop&) { throw std::runtime_error("boom"); }, {.writes = {kX}})
        .use([&](Loop&) { ++later; }, {.reads = {kX}})
        .use([&](Loop&) { ++later; });
    EXPECT_EQ(loop.run().why, "step 'fails': std::runtime_error: boom");
    EXPECT_EQ(before, 1);
    EXPECT_EQ(later, 0);
    EXPECT_EQ(dropped, "~a0 ");
  }
}

TEST(Async, ReportsAllThatFailedInTheOrderOfSteps) {
  Pipeline<Loop> loop({.async = true, .n_async_workers = 1});
  std::barrier meet(2);
  const auto fails = [&](const char* text) {
    return [&meet, text](Loop&) {
      meet.arrive_and_wait();
      throw std::runtime_error(text);
    };
  };
  loop.use("a", fails("one"), {.writes = {nothing}}).use("b", fails("two"), {.writes = {nothing}});
  EXPECT_EQ(loop.run().why, "step 'a': std::runtime_error: one\nstep 'b': std::runtime_error: two");
}

constexpr Event<int> kNever{"never"};

TEST(Async, EndsTheWaitOfAStepWhenAnotherFails) {
  Pipeline<Loop> loop({.async = true, .n_async_workers = 1});
  std::barrier meet(2);
  std::atomic<int> cut_short = 0;
  const auto waits = [&](Loop&) {
    auto pending = loop.events().expect(kNever);
    meet.arrive_and_wait();
    const auto came = pending.wait(std::chrono::hours(1));
    if (!came && came.error() == NoEvent::Failed) ++cut_short;
  };
  const auto fails = [&](Loop&) {
    meet.arrive_and_wait();
    throw std::runtime_error("boom");
  };
  loop.use(waits, {.writes = {nothing}}).use("fails", fails, {.writes = {nothing}});
  EXPECT_EQ(loop.run().why, "step 'fails': std::runtime_error: boom");
  EXPECT_EQ(cut_short, 1);
  Pipeline<Loop> group({.n_async_workers = 1});
  group.use("group", parallel(
                         [&](Loop&) {
                           auto pending = group.events().expect(kNever);
                           meet.arrive_and_wait();
                           if (pending.wait(std::chrono::hours(1)).error() == NoEvent::Failed)
                             ++cut_short;
                         },
                         fails));
  EXPECT_EQ(group.run().why, "step 'group/2': std::runtime_error: boom");
  EXPECT_EQ(cut_short, 2);
  EXPECT_EQ(group.events().wait_for(kNever, std::chrono::nanoseconds(1)).error(), NoEvent::Deadline)
      << "later waits are not concerned";
}

TEST(Async, AsksAStepToStopWhenAnotherFails) {
  Pipeline<Loop> loop({.async = true, .n_async_workers = 1});
  std::barrier meet(2);
  bool stopped = false;
  const auto waits = [&](Loop&) {
    const std::stop_token ending = loop.ending();
    meet.arrive_and_wait();
    std::mutex mutex;
    std::condition_variable_any never;
    std::unique_lock lock(mutex);
    never.wait_for(lock, ending, std::chrono::seconds(30), [] { return false; });
    stopped = ending.stop_requested();
  };
  const auto fails = [&](Loop&) {
    meet.arrive_and_wait();
    throw std::runtime_error("boom");
  };
  loop.use(waits, {.writes = {nothing}}).use("fails", fails, {.writes = {nothing}});
  EXPECT_EQ(loop.run().why, "step 'fails': std::runtime_error: boom");
  EXPECT_TRUE(stopped);
}

TEST(Async, NestsParallelGroupsAndIsDrivenByHand) {
  std::atomic<int> calls = 0;
  const auto count = [&](Loop&) { ++calls; };
  Pipeline<Loop> loop({.async = true, .n_async_workers = 2});
  loop.use(parallel(count, count, parallel(count, count)), {.writes = {kA}})
      .use(parallel(count, count), {.writes = {kB}});
  for (int i = 0; i < 50; ++i) {
    EXPECT_TRUE(loop.forward());
    EXPECT_TRUE(loop.backward());
    EXPECT_TRUE(loop.renew());
  }
  EXPECT_EQ(calls, 300);
}

TEST(Async, WrapsStepsAsEver) {
  std::mutex mutex;
  std::vector<std::string> seen;
  Pipeline<Loop> loop({.async = true});
  loop.use("a", [](Loop&) {}, {.writes = {nothing}})
      .use("b", [](Loop&) { return [] {}; }, {.writes = {nothing}});
  loop.wrap([&](const StepCall& call, Loop&, const Next& next) {
    next();
    const std::scoped_lock lock(mutex);
    seen.push_back(std::string(call.step) + (call.phase == Phase::Forward ? "" : "'"));
  });
  EXPECT_TRUE(loop.run({.max_steps = 1}));
  EXPECT_THAT(seen, testing::UnorderedElementsAre("a", "b", "b'"));
}

}  // namespace
}  // namespace trainyard::pipeline

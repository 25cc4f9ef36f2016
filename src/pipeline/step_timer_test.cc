#include "trainyard/step_timer.h"

#include <map>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pipeline/test_loop.h"
#include "trainyard/event_bus.h"
#include "trainyard/metrics.h"

namespace trainyard::pipeline {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::Pair;

/// Time that passes only when a step says so.
struct Clock {
  std::chrono::nanoseconds time{};
  StepTimerOptions options(std::uint64_t every = 0) {
    return {.every = every, .now = [this] { return time; }};
  }
};

TEST(StepTimer, AddsBothHalvesOfACallWithoutWhatRunsBetween) {
  Clock clock;
  StepTimer timer(clock.options());
  Pipeline<Loop> loop;
  loop.use("both",
           [&](Loop&) -> Step {
             clock.time += 10ms;
             co_yield after;
             clock.time += 30ms;
           })
      .use("plain", [&](Loop& context) { clock.time += context.total_step == 0 ? 100ms : 300ms; });
  timer.watch(loop);
  EXPECT_TRUE(loop.run({.max_steps = 2}));
  const auto times = timer.times();
  ASSERT_EQ(times.size(), 2U);
  EXPECT_EQ(times[0].step, "both");
  EXPECT_EQ(times[0].calls, 2U);
  EXPECT_EQ(times[0].mean, 40ms);
  EXPECT_EQ(times[1].step, "plain");
  EXPECT_EQ(times[1].calls, 2U);
  EXPECT_EQ(times[1].mean, 200ms);
  EXPECT_NEAR(times[1].p50.count(), 100, 5);
  EXPECT_NEAR(times[1].p95.count(), 300, 15);
}

TEST(StepTimer, TimesPartsAndNestedStepsToo) {
  Clock clock;
  StepTimer timer(clock.options());
  Pipeline<Loop> loop;
  const auto inner = loop.nested("inner", [&](Loop&) { clock.time += 1ms; });
  loop.use("group", serial(named("a",
                                 [&](Loop& context) {
                                   inner(context);
                                   inner(context);
                                 }),
                           [&](Loop&) { clock.time += 2ms; }));
  timer.watch(loop);
  EXPECT_TRUE(loop.run({.max_steps = 3}));
  std::map<std::string, std::pair<std::uint64_t, double>> seen;
  for (const auto& step : timer.times()) seen[step.step] = {step.calls, step.mean.count()};
  EXPECT_THAT(seen, ElementsAre(Pair("group", Pair(3U, 4.0)), Pair("group/2", Pair(3U, 2.0)),
                                Pair("group/a", Pair(3U, 2.0)), Pair("inner", Pair(6U, 1.0))));
}

TEST(StepTimer, CountsACallOnceWhoseWayBackComesLater) {
  Clock clock;
  StepTimer timer(clock.options());
  Pipeline<Loop> loop;
  const auto inner = loop.nested("inner", [&](Loop& context) -> Step {
    const auto took = ++context.loss * 1ms;
    clock.time += took;
    co_yield after;
    clock.time += 10 * took;
  });
  loop.use("outer", [&](Loop& context) {
    inner(context);
    inner(context);
  });
  timer.watch(loop);
  EXPECT_TRUE(loop.run({.max_steps = 2}));
  const auto times = timer.times();
  ASSERT_EQ(times.size(), 2U);
  EXPECT_EQ(times[1].step, "inner");
  EXPECT_TRUE(times[1].is_part);
  EXPECT_EQ(times[1].calls, 4U);
  EXPECT_EQ(times[1].mean, 16.5ms);
}

TEST(StepTimer, EmitsTheMeansSinceTheLastTime) {
  Clock clock;
  StepTimer timer(clock.options(2));
  std::vector<Metrics> told;
  Pipeline<Loop> loop;
  loop.use("learn", [&](Loop& context) { clock.time += (1 + context.total_step) * 1ms; });
  timer.watch(loop);
  const Subscription heard =
      loop.events().on(kMetrics, [&](const Metrics& it) { told.push_back(it); });
  EXPECT_TRUE(loop.run({.max_steps = 5}));
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told[0].total_step, 1U);
  EXPECT_THAT(told[0].values, ElementsAre(Pair("learn ms", 1.5)));
  EXPECT_EQ(told[1].total_step, 3U);
  EXPECT_THAT(told[1].values, ElementsAre(Pair("learn ms", 3.5)));
}

TEST(StepTimer, MakesATable) {
  Clock clock;
  StepTimer timer(clock.options());
  Pipeline<Loop> loop;
  loop.use("collect", [&](Loop&) { clock.time += 250us; })
      .use("learn", serial(named("fit", [&](Loop&) { clock.time += 750us; })));
  timer.watch(loop);
  EXPECT_TRUE(loop.run({.max_steps = 1}));
  EXPECT_EQ(timer.table(),
            "step           calls       mean        p50        p95  share\n"
            "collect            1     250 us     250 us     250 us   25 %\n"
            "learn              1     750 us     737 us     737 us   75 %\n"
            "learn/fit          1     750 us     737 us     737 us   75 %\n");
}

TEST(StepTimer, MakesATableOfNothing) {
  EXPECT_EQ(StepTimer().table(), "step      calls       mean        p50        p95  share\n");
}

TEST(StepTimer, BearsStepsSideBySide) {
  StepTimer timer({.every = 3});
  Pipeline<Loop> loop({.async = true, .n_async_workers = 2});
  for (const char* name : {"a", "b", "c"}) loop.use(name, [](Loop&) {}, {.writes = {nothing}});
  timer.watch(loop);
  EXPECT_TRUE(loop.run({.max_steps = 100}));
  std::uint64_t calls = 0;
  for (const auto& step : timer.times()) calls += step.calls;
  EXPECT_EQ(calls, 300U);
}

}  // namespace
}  // namespace trainyard::pipeline

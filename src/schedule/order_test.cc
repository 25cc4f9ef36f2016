// The order in which the scheduler starts waiting tasks, if all durations are known.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/time.h"
#include "model/plan.h"
#include "schedule/test_yard.h"

namespace trainyard::schedule {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::IsEmpty;

constexpr Duration kSecond{1'000};

/// Many short tasks with a few long ones behind them; one of each fits beside the other.
model::Plan short_then_long(int shorts, int longs) {
  model::Plan plan = PlanBuilder().tasks(shorts, gb(4)).tasks(longs, gb(6)).build();
  plan.shapes[0].terms.train_expected = kSecond;
  plan.shapes[1].terms.train_expected = kSecond * 1'000;
  return plan;
}

TEST(Scheduler, LooksAheadOverFewTasks) {
  const Yard yard(short_then_long(100, 10));
  EXPECT_THAT(commands(yard.first), ElementsAre(EndsWith("with 6 GB"), EndsWith("with 4 GB")));
}

TEST(Scheduler, StartsThoseOfTheLargestPriorityFirst) {
  Yard yard(
      PlanBuilder().tasks(1, gb(10)).priority(-1).tasks(1, gb(10)).tasks(2, gb(10)).priority(7));
  EXPECT_THAT(commands(yard.first), ElementsAre("start 2#1 with 10 GB"));
  EXPECT_THAT(commands(yard.ran(2, at(1))), ElementsAre("start 3#1 with 10 GB"));
  // A batch that comes later may be more urgent than all that waits.
  EXPECT_THAT(commands(yard.add(PlanBuilder().tasks(1, gb(10)).priority(8).build(), at(1))),
              IsEmpty());
  EXPECT_THAT(commands(yard.ran(3, at(2))), ElementsAre("start 4#1 with 10 GB"));
  EXPECT_THAT(commands(yard.ran(4, at(3))), ElementsAre("start 1#1 with 10 GB"));
  EXPECT_THAT(commands(yard.ran(1, at(4))), ElementsAre("start 0#1 with 10 GB"));
}

TEST(Scheduler, LetsARetryWaitInThePlaceOfItsPriority) {
  model::Policy policy = kAnythingGoes;
  Yard yard(PlanBuilder().tasks(2, gb(6)).tasks(1, gb(6)).priority(1), policy);
  EXPECT_THAT(commands(yard.first), ElementsAre("start 2#1 with 6 GB"));
  static_cast<void>(yard.started(2));
  EXPECT_THAT(commands(yard.ended(2, at(1), model::KilledBy{.signal = 9, .out_of_memory = true})),
              ElementsAre("start 2#2 with 7.2 GB"));
}

TEST(Scheduler, DoesNotLookAheadOverDifferentPriorities) {
  model::Plan plan = short_then_long(100, 10);
  plan.shapes[0].terms.priority = 1;
  const Yard yard(plan);
  EXPECT_THAT(commands(yard.first), ElementsAre("start 0#1 with 4 GB", "start 1#1 with 4 GB"));
}

TEST(Scheduler, LooksAheadByShapeOverMoreTasksThanCanBePlayedOneByOne) {
  const Yard yard(short_then_long(100'000, 100));
  EXPECT_THAT(commands(yard.first), ElementsAre("start 100000#1 with 6 GB", "start 0#1 with 4 GB"));
}

TEST(Scheduler, LooksAheadOverABatchThatComesWhileManyTasksWait) {
  model::Plan plan = PlanBuilder().tasks(100'000, gb(4)).build();
  plan.shapes[0].terms.train_expected = kSecond;
  Yard yard(plan);
  EXPECT_THAT(commands(yard.first), ElementsAre("start 0#1 with 4 GB", "start 1#1 with 4 GB"));
  model::Plan more = PlanBuilder().tasks(100, gb(6)).build();
  more.shapes[0].terms.train_expected = kSecond * 1'000;
  EXPECT_THAT(commands(yard.add(more)), IsEmpty());
  EXPECT_THAT(commands(yard.ran(0, at(1))), ElementsAre("start 100000#1 with 6 GB"));
}

TEST(Scheduler, GoesInTheOrderOfTheFileWhereTooManyTasksDiffer) {
  PlanBuilder builder;
  constexpr int kShapes = 5'001;
  for (int i = 0; i < kShapes; ++i) builder.tasks(1, gb(4));
  model::Plan plan = builder.tasks(1, gb(6)).build();
  for (model::Shape& shape : plan.shapes) shape.terms.train_expected = kSecond;
  plan.shapes.back().terms.train_expected = kSecond * 100'000;
  const Yard yard(plan);
  EXPECT_THAT(commands(yard.first), ElementsAre("start 0#1 with 4 GB", "start 1#1 with 4 GB"));
}

}  // namespace
}  // namespace trainyard::schedule

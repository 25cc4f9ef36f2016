#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/time.h"
#include "model/command.h"
#include "model/event.h"
#include "model/plan.h"
#include "schedule/test_yard.h"

namespace trainyard::schedule {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

model::Plan a_plan(int now, int later, Duration start_after) {
  model::Plan plan = PlanBuilder().tasks(now, gb(1)).tasks(later, gb(1)).build();
  plan.shapes.back().terms.start_after = start_after;
  return plan;
}

TEST(StartAfter, HoldsTasksBackUntilTheirTimeAndSaysSo) {
  Yard yard(a_plan(1, 2, Duration{600'000}));
  EXPECT_THAT(commands(yard.first), ElementsAre("start 0#1 with 1 GB"));
  EXPECT_THAT(changes(yard.first),
              Contains("shape 1: starts 10m after the run began ('start-after')"));
  EXPECT_EQ(yard.wakeup(), at(600));
  EXPECT_THAT(commands(yard.ran(0, at(5))), IsEmpty());
  EXPECT_FALSE(yard.over());
  EXPECT_THAT(commands(yard.on(at(599), model::TimePassed{})), IsEmpty());
  const model::Decision due = yard.on(at(600), model::TimePassed{});
  EXPECT_THAT(commands(due), ElementsAre("start 1#1 with 1 GB", "start 2#1 with 1 GB"));
  EXPECT_THAT(changes(due), Contains("shape 1: "));
}

TEST(StartAfter, CountsFromTheSubmissionOfALaterBatch) {
  Yard yard(PlanBuilder().tasks(1, gb(1)));
  static_cast<void>(yard.add(a_plan(0, 1, Duration{10'000}), at(100)));
  EXPECT_EQ(yard.wakeup(), at(110));
  EXPECT_THAT(commands(yard.on(at(110), model::TimePassed{})), ElementsAre("start 1#1 with 1 GB"));
}

TEST(StartAfter, IsOverWhereThatTimeIsPastWhenTheGroupMayRun) {
  model::Plan plan = PlanBuilder()
                         .group({.name = "first"})
                         .tasks(1, gb(1))
                         .group({.name = "second", .needs = {{0}}})
                         .tasks(1, gb(1))
                         .build();
  plan.shapes.back().terms.start_after = Duration{10'000};
  Yard yard(plan);
  static_cast<void>(yard.started(0));
  EXPECT_THAT(commands(yard.ended(0, at(60))), ElementsAre("start 1#1 with 1 GB"));
}

TEST(StartAfter, IsForgottenWithATaskThatIsKilledOrStopped) {
  Yard yard(a_plan(0, 2, Duration{600'000}));
  const model::Decision killed = yard.on(at(1), model::KillAsked{.task = {0}, .request = 7});
  EXPECT_THAT(changes(killed), Contains(HasSubstr("0#0 INIT SKIPPED")));
  EXPECT_THAT(commands(killed), ElementsAre("answer 7 done"));
  EXPECT_THAT(changes(yard.on(at(2), model::InterruptAsked{})),
              Contains(HasSubstr("1#0 INIT STOPPED")));
  EXPECT_TRUE(yard.over());
}

}  // namespace
}  // namespace trainyard::schedule

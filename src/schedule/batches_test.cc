// The growth of a run: batches that are added while it runs, or after it has been idle.
#include <cstdint>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/plan.h"
#include "schedule/test_yard.h"

namespace trainyard::schedule {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

model::Plan needing_earlier(std::uint32_t group) {
  return PlanBuilder()
      .group({.name = "more", .needs_earlier = {model::GroupIndex{group}}})
      .tasks(1, gb(1))
      .build();
}

TEST(Scheduler, HasNothingToDoBeforeABatchIsAdded) {
  Yard yard{model::Plan{}};
  EXPECT_THAT(changes(yard.first), IsEmpty());
  EXPECT_THAT(commands(yard.first), IsEmpty());
  EXPECT_TRUE(yard.over());
}

TEST(Scheduler, StartsTheTasksOfALaterBatchBehindThoseThatWait) {
  Yard yard(PlanBuilder().tasks(2, gb(6)));
  static_cast<void>(yard.started(0));
  const model::Decision added = yard.add(PlanBuilder().tasks(1, gb(6)).tasks(1, gb(3)).build());
  EXPECT_THAT(
      changes(added),
      ElementsAre("group 1 running",
                  "shape 1: needs 6 GB of memory, 1 GB available, 9 GB reserved or used by 2 tasks",
                  "3#1 AVAILABLE"));
  EXPECT_THAT(commands(added), ElementsAre("start 3#1 with 3 GB")) << "the small one fits beside";
  EXPECT_THAT(commands(yard.ended(0, at(1))), ElementsAre("start 1#1 with 6 GB"));
  EXPECT_THAT(commands(yard.ran(1, at(2))), ElementsAre("start 2#1 with 6 GB"));
}

TEST(Scheduler, GoesOnWithABatchThatIsAddedAfterItWasIdle) {
  Yard yard(PlanBuilder().tasks(1, gb(1)));
  static_cast<void>(yard.ran(0, at(1)));
  EXPECT_TRUE(yard.over());
  const model::Decision added = yard.add(PlanBuilder().tasks(1, gb(1)).build(), at(100));
  EXPECT_FALSE(yard.over());
  EXPECT_THAT(commands(added), ElementsAre("start 1#1 with 1 GB"));
  static_cast<void>(yard.ran(1, at(101)));
  EXPECT_TRUE(yard.over());
}

TEST(Scheduler, LetsAGroupWaitForOneOfAnEarlierBatch) {
  Yard yard(PlanBuilder().group({.name = "train"}).tasks(1, gb(1)));
  static_cast<void>(yard.started(0));
  const model::Decision added = yard.add(needing_earlier(0));
  EXPECT_THAT(changes(added), ElementsAre("shape 1: waits for group 'train'"));
  EXPECT_THAT(commands(added), IsEmpty());
  EXPECT_THAT(commands(yard.ended(0, at(1))), ElementsAre("start 1#1 with 1 GB"));
}

TEST(Scheduler, SkipsAGroupAtOnceThatNeedsOneOfAnEarlierBatchThatHasFailed) {
  Yard yard(PlanBuilder().group({.name = "train"}).tasks(1, gb(1)));
  static_cast<void>(yard.ran(0, at(1), model::ExitedWith{1}));
  const model::Decision added = yard.add(needing_earlier(0), at(2));
  EXPECT_THAT(changes(added),
              ElementsAre("1#0 INIT SKIPPED: needs group 'train', where a task failed",
                          "group 1 skipped: needs group 'train', where a task failed"));
  EXPECT_TRUE(yard.over());
}

TEST(Scheduler, StopsABatchThatComesAfterAnInterrupt) {
  Yard yard(PlanBuilder().tasks(1, gb(1)));
  static_cast<void>(yard.started(0));
  static_cast<void>(yard.on(at(1), model::InterruptAsked{}));
  const model::Decision added = yard.add(PlanBuilder().tasks(1, gb(1)).build(), at(1));
  EXPECT_THAT(changes(added),
              ElementsAre("1#0 INIT STOPPED: the run was interrupted", "group 1 stopped"));
  EXPECT_THAT(commands(added), IsEmpty());
}

TEST(Scheduler, PutsTasksInOrderAgainWhenABatchIsAdded) {
  // Two-phase tasks on GPUs are loaded in the order of their sizes, whichever batch they belong to.
  const model::Policy policy{.memory_remain = Bytes{0}, .waiting_max = 1};
  Yard yard(PlanBuilder().tasks(3, gb(4)).on_gpus(1, gb(4)).two_phase(), policy, kTwoGpus);
  EXPECT_THAT(commands(yard.first), ElementsAre("start 0#1 with 4 GB"));
  static_cast<void>(yard.add(PlanBuilder().tasks(1, gb(1)).on_gpus(1, gb(1)).two_phase().build()));
  const model::Decision loaded = yard.loaded(0, at(1));
  EXPECT_THAT(commands(loaded),
              ElementsAre("train 0#1 with 4 GB, 4 GB on 0", "start 3#1 with 1 GB"));
}

}  // namespace
}  // namespace trainyard::schedule

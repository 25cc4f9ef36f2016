// The reservations of disk space.

#include <cstdint>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/time.h"
#include "model/command.h"
#include "model/event.h"
#include "schedule/test_yard.h"

namespace trainyard::schedule {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

model::Sampled disk_of(Bytes free, Bytes total = gb(1000)) {
  return {.memory_available = kMachineMemory,
          .disk = model::DiskRoom{.free = free, .total = total}};
}

/// A yard that has seen how much is free before any batch is added.
Yard yard_with(Bytes free) {
  Yard yard{PlanBuilder()};
  static_cast<void>(yard.on(kStart, disk_of(free)));
  return yard;
}

TEST(Disk, IsPromisedOnceUntilATaskEndsWhateverItHasWritten) {
  Yard yard = yard_with(gb(50));
  const model::Decision first = yard.add(PlanBuilder().tasks(4, gb(1)).disk(gb(20)).build());
  EXPECT_THAT(commands(first), ElementsAre("start 0#1 with 1 GB", "start 1#1 with 1 GB"));
  EXPECT_EQ(changes(first).back(),
            "shape 0: needs 20 GB of disk, 50 GB free, 40 GB of it reserved by 2 tasks");
  // They have written ten of their forty: thirty may come.
  EXPECT_THAT(commands(yard.on(at(1), disk_of(gb(40)))), IsEmpty());
  static_cast<void>(yard.started(0));
  // Data that it wrote before it ended is not seen before the next look.
  EXPECT_THAT(commands(yard.ended(0, at(2))), IsEmpty());
  EXPECT_THAT(commands(yard.on(at(3), disk_of(gb(39)))), IsEmpty());
  EXPECT_THAT(commands(yard.on(at(4), disk_of(gb(40)))), ElementsAre("start 2#1 with 1 GB"));
}

TEST(Disk, IsLeftAloneWhereNobodyLooked) {
  Yard yard{PlanBuilder().tasks(3, gb(1)).disk(gb(20))};
  EXPECT_EQ(commands(yard.first).size(), 3U);
}

TEST(Disk, OfAnySizeIsPromisedWhereNobodyLookedAndCountsAsAllOfItAfterALook) {
  constexpr Bytes kMost{std::numeric_limits<std::int64_t>::max()};
  Yard yard{PlanBuilder().tasks(3, gb(1)).disk(kMost)};
  EXPECT_EQ(commands(yard.first).size(), 3U);
  static_cast<void>(yard.on(at(1), disk_of(gb(40), gb(100))));
  EXPECT_EQ(changes(yard.add(PlanBuilder().tasks(1, gb(1)).disk(gb(20)).build())).back(),
            "shape 1: needs 20 GB of disk, 40 GB free, 300 GB of it reserved by 3 tasks");
}

TEST(Disk, HoldsBackNobodyWhoAsksForNone) {
  Yard yard = yard_with(gb(10));
  const model::Decision first =
      yard.add(PlanBuilder().tasks(1, gb(1)).disk(gb(20)).tasks(2, gb(1)).build());
  EXPECT_THAT(commands(first), ElementsAre("start 1#1 with 1 GB", "start 2#1 with 1 GB"));
  EXPECT_THAT(changes(first), Contains("shape 0: needs 20 GB of disk, 10 GB free"));
}

TEST(Disk, IsNotTakenByAYoungerTaskBeforeAnOlderThatWaitsForIt) {
  Yard yard = yard_with(gb(50));
  const model::Decision first = yard.add(PlanBuilder()
                                             .tasks(1, gb(1))
                                             .disk(gb(10))
                                             .tasks(1, gb(1))
                                             .disk(gb(45))
                                             .tasks(1, gb(1))
                                             .disk(gb(5))
                                             .build());
  EXPECT_THAT(commands(first), ElementsAre("start 0#1 with 1 GB"));
  EXPECT_EQ(changes(first).back(),
            "shape 2: would delay an older task that waits for more than is free");
  static_cast<void>(yard.started(0));
  static_cast<void>(yard.ended(0, at(1)));
  EXPECT_THAT(commands(yard.on(at(2), disk_of(gb(50)))),
              ElementsAre("start 1#1 with 1 GB", "start 2#1 with 1 GB"));
}

TEST(Disk, IsTakenByAYoungerTaskWhereNobodyRunsWhoCouldLeaveSome) {
  Yard yard = yard_with(gb(10));
  const model::Decision first =
      yard.add(PlanBuilder().tasks(1, gb(1)).disk(gb(45)).tasks(1, gb(1)).disk(gb(5)).build());
  EXPECT_THAT(commands(first), ElementsAre("start 1#1 with 1 GB"));
}

TEST(Disk, IsPromisedToATwoPhaseTaskFromItsLoadingOn) {
  Yard yard = yard_with(gb(30));
  const model::Decision first =
      yard.add(PlanBuilder().tasks(2, gb(1)).disk(gb(20)).two_phase().build());
  EXPECT_THAT(commands(first), ElementsAre("start 0#1 with 1 GB"));
  EXPECT_THAT(commands(yard.loaded(0, at(1))), ElementsAre("train 0#1 with 1 GB"));
  EXPECT_THAT(commands(yard.on(at(2), disk_of(gb(30)))), IsEmpty());
}

TEST(Disk, ThatIsSmallerInAllEndsTheWaiting) {
  Yard yard = yard_with(gb(30));
  static_cast<void>(yard.add(PlanBuilder().tasks(1, gb(1)).disk(gb(2000)).build()));
  EXPECT_THAT(
      changes(yard.on(at(1), disk_of(gb(30)))),
      Contains(
          "0#0 INIT SKIPPED: needs 2 TB of disk, the disk of the run directory has 1 TB in total; "
          "request less, or put the run directory on a larger disk"));
  EXPECT_TRUE(yard.over());
}

TEST(Disk, IsGivenBackAtOnceByWhatNeverStarted) {
  Yard yard = yard_with(gb(30));
  static_cast<void>(yard.add(PlanBuilder().tasks(1, gb(1)).disk(gb(20)).build()));
  const model::Decision refused =
      yard.on(kStart, model::ClaimRefused{.attempts = {{.task = {0}, .attempt = 1}}});
  EXPECT_THAT(commands(refused), ElementsAre("start 0#1 with 1 GB"));
}

}  // namespace
}  // namespace trainyard::schedule

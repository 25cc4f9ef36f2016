#include "model/gpu_obstacle.h"

#include <gtest/gtest.h>

#include "model/ids.h"

namespace trainyard::model {
namespace {

using Kind = GpuObstacle::Kind;

Reason wants(Bytes memory, int gpus = 1) {
  return {.cause = Cause::Gpus, .needs = {.gpus = gpus, .gpu_memory = memory}};
}

Headroom three_cards() {
  return {.gpus = {{.label = "0", .tasks = 2, .free = gb(4)},
                   {.label = "1", .tasks = 1, .free = gb(7)},
                   {.label = "2", .whole = true, .tasks = 1}}};
}

TEST(NearestObstacle, IsWhatLacksLeast) {
  EXPECT_EQ(nearest_obstacle(wants(gb(9)), three_cards()),
            (GpuObstacle{.kind = Kind::Memory, .gpu = 1, .missing = gb(2)}));
  EXPECT_EQ(nearest_obstacle(wants(gb(9), 2), three_cards()),
            (GpuObstacle{.kind = Kind::Memory, .gpu = 0, .missing = gb(5)}))
      << "the second of two GPUs is what it waits for";
  EXPECT_EQ(nearest_obstacle(wants(gb(9), 3), three_cards())->kind, Kind::Whole);
  EXPECT_EQ(nearest_obstacle(wants(gb(9), 4), three_cards()), std::nullopt);
}

TEST(NearestObstacle, IsALimitOfAGpuWithRoomBeforeTheMemoryOfAnother) {
  Headroom room = three_cards();
  room.gpus[1].tasks_max = 1;
  EXPECT_EQ(nearest_obstacle(wants(gb(5)), room)->kind, Kind::Tasks);
  room.gpus[1].tasks_max = 0;
  room.gpus[1].utilization = 700;
  Reason busy = wants(gb(5));
  busy.needs.sharing.utilization = 400;
  EXPECT_EQ(nearest_obstacle(busy, room)->kind, Kind::Utilization);
  room.gpu_utilization_max = 1100;
  EXPECT_EQ(nearest_obstacle(busy, room)->kind, Kind::None);
  room.gpus[1].avoided_for = 1001;
  EXPECT_EQ(nearest_obstacle(busy, room)->kind, Kind::OtherUser);
}

TEST(NearestObstacle, IsOfAGpuThatItMayHaveAndThatAnswers) {
  Reason first = wants(gb(9));
  first.needs.gpu = GpuIndex{0};
  EXPECT_EQ(nearest_obstacle(first, three_cards())->gpu, 0U);
  Headroom room = three_cards();
  room.gpus[0].present = false;
  EXPECT_EQ(nearest_obstacle(first, room), std::nullopt);
}

TEST(NearestObstacle, IsRatherOfAGpuThatIsLeftToNobody) {
  Headroom room = three_cards();
  room.gpus[1].avoided_for = 1001;
  EXPECT_EQ(nearest_obstacle(wants(gb(9)), room)->gpu, 0U);
}

TEST(NearestObstacle, IsAsManyTasksAsItOrOneOfThemLetsBeThere) {
  Headroom room{.gpus = {{.label = "0", .tasks = 2, .tasks_max = 2, .free = gb(9)}}};
  Reason reason = wants(gb(1));
  EXPECT_EQ(nearest_obstacle(reason, room)->kind, GpuObstacle::Kind::Tasks);
  EXPECT_FALSE(is_full_by_its_own_word(reason, room.gpus[0]));
  reason.needs.sharing.max_per_gpu = 2;
  EXPECT_TRUE(is_full_by_its_own_word(reason, room.gpus[0]));
  room.gpus[0].tasks_max = 0;
  EXPECT_EQ(nearest_obstacle(reason, room)->kind, GpuObstacle::Kind::Tasks);
  reason.needs.sharing.max_per_gpu = 3;
  EXPECT_FALSE(is_full_by_its_own_word(reason, room.gpus[0]));
  EXPECT_EQ(nearest_obstacle(reason, room)->kind, GpuObstacle::Kind::None);
}

}  // namespace
}  // namespace trainyard::model

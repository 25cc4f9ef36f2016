// No two tasks that share a tight GPU are in their first allocation at once.
#include "schedule/startup_gate.h"

#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "model/event.h"
#include "model/ids.h"
#include "model/plan.h"
#include "schedule/test_yard.h"

namespace trainyard::schedule {
namespace {

using Texts = std::vector<std::string>;

constexpr Duration kSettleMax{30'000};

model::Policy gated() {
  model::Policy policy{.memory_remain = Bytes{0}, .gpu_memory_remain = Bytes{0}};
  policy.gpu_settle_max = kSettleMax;
  return policy;
}

/// One GPU of 8 GB, and memory and CPUs for all tasks that fit there.
const model::Capacity kOneGpu{.memory = gb(100),
                              .cpus = model::cpus(16),
                              .gpus = {{.number = 0, .pci = "a", .memory = gb(8)}}};

/// The first GPU when this task alone has something there.
model::GpusSampled has(std::uint32_t task, Bytes memory) {
  return {.gpus = {{.used = memory}},
          .uses = {{.key = {.task = {task}}, .gpu = {0}, .memory = memory}}};
}

TEST(StartupGate, IsShutWhereOneThatBeginsCouldTakeTwiceWhatItIsPromised) {
  StartupGate gate(2);
  EXPECT_EQ(gate.opens_at(), std::nullopt);
  gate.begins({model::GpuIndex{1}}, gb(3), at(30));
  gate.begins({model::GpuIndex{1}}, gb(1), at(20));
  EXPECT_EQ(gate.opens_at(), at(20));
  const auto shut = [&gate](Bytes free, Bytes asked) {
    const std::vector<GpuRoom> room{{.free = free}, {.free = free}};
    const auto open = gate.open(room, {.gpus = 1, .gpu_memory = asked});
    EXPECT_FALSE(open[0].avoided) << "nobody begins there";
    return open[1].avoided;
  };
  EXPECT_FALSE(shut(gb(5), gb(2))) << "3 GB are left for the one that is promised so much";
  EXPECT_TRUE(shut(gb(4), gb(2)));
  EXPECT_TRUE(shut(gb(7), gb(4))) << "it may take twice as much itself";
}

TEST(StartupGate, LetsTasksBeginOneAfterTheOtherWhereTheyLeaveLittleRoom) {
  Yard yard(
      PlanBuilder().tasks(3, gb(1), {}).on_gpus(1, gb(2)).tasks(2, gb(1), {}).on_gpus(1, gb(1)),
      gated(), kOneGpu);
  EXPECT_EQ(commands(yard.first),
            (Texts{"start 0#1 with 1 GB, 2 GB on 0", "start 1#1 with 1 GB, 2 GB on 0",
                   "start 2#1 with 1 GB, 2 GB on 0"}))
      << "2 GB are left beside the third";
  EXPECT_EQ(changes(yard.first).back(),
            "shape 1: waits for a task that has just started on GPU 0 to allocate its memory, as "
            "little is left there");
}

TEST(StartupGate, OpensWhenWhoBeganHasTakenItsMemory) {
  Yard yard(PlanBuilder().tasks(2, gb(1), {}).on_gpus(1, gb(4)), gated(), kOneGpu);
  EXPECT_EQ(commands(yard.go(yard.first, at(0))), Texts{"start 0#1 with 1 GB, 4 GB on 0"});
  EXPECT_EQ(commands(yard.on(at(1), has(0, mb(300)))), Texts{}) << "a context, and no more";
  EXPECT_EQ(commands(yard.on(at(2), has(0, mb(300)))), Texts{});
  EXPECT_EQ(commands(yard.on(at(3), has(0, gb(2)))), Texts{}) << "it grows";
  EXPECT_EQ(commands(yard.on(at(4), has(0, gb(3)))), Texts{});
  EXPECT_EQ(commands(yard.on(at(5), has(0, gb(3)))), Texts{"start 1#1 with 1 GB, 4 GB on 0"});
}

TEST(StartupGate, OpensWhenWhoBeganReportsProgress) {
  Yard yard(PlanBuilder().tasks(2, gb(1), {}).on_gpus(1, gb(4)), gated(), kOneGpu);
  yard.go(yard.first, at(0));
  EXPECT_EQ(commands(yard.on(at(1), model::Progressed{.key = {.task = {1}}, .fraction = 0.1})),
            Texts{})
      << "which of them";
  EXPECT_EQ(commands(yard.on(at(1), model::Progressed{.key = {.task = {0}}, .fraction = 0.1})),
            Texts{"start 1#1 with 1 GB, 4 GB on 0"});
}

TEST(StartupGate, OpensAfterAWhileWhateverIsSeen) {
  Yard yard(PlanBuilder().tasks(2, gb(1), {}).on_gpus(1, gb(4)), gated(), kOneGpu);
  yard.go(yard.first, at(1));
  EXPECT_EQ(yard.wakeup(), at(30)) << "it was asked for then, and may have begun a little later";
  EXPECT_EQ(commands(yard.on(at(30), model::TimePassed{})), Texts{});
  EXPECT_EQ(yard.wakeup(), at(31));
  EXPECT_EQ(commands(yard.on(at(31), model::TimePassed{})),
            Texts{"start 1#1 with 1 GB, 4 GB on 0"});
}

TEST(StartupGate, WakesNobodyWhenTheRunIsInterrupted) {
  Yard yard(PlanBuilder().tasks(2, gb(1), {}).on_gpus(1, gb(4)), gated(), kOneGpu);
  yard.go(yard.first, at(0));
  EXPECT_EQ(yard.wakeup(), at(30));
  EXPECT_EQ(commands(yard.on(at(1), model::InterruptAsked{})), Texts{"stop 0#1"});
  EXPECT_EQ(yard.wakeup(), at(11)) << "for the end of the grace alone";
}

TEST(StartupGate, IsOpenWhereTheDriverSaysNotWhoHasWhat) {
  Yard yard(PlanBuilder().tasks(2, gb(1), {}).on_gpus(1, gb(4)), gated(), kOneGpu);
  yard.go(yard.first, at(0));
  EXPECT_EQ(commands(yard.on(at(1), model::GpusSampled{.gpus = {{.processes_known = false}}})),
            Texts{"start 1#1 with 1 GB, 4 GB on 0"});
}

TEST(StartupGate, KeepsTheRoomOfWhoWaitsThereAgainstYoungerOnes) {
  // The second waits to begin, and 5 GB are free: the third would fit there, but not together with
  // both.
  Yard yard(PlanBuilder()
                .tasks(1, gb(1), {})
                .on_gpus(1, gb(3))
                .tasks(1, gb(1), {})
                .on_gpus(1, gb(4))
                .tasks(1, gb(1), {})
                .on_gpus(1, gb(2)),
            gated(), kOneGpu);
  EXPECT_EQ(commands(yard.go(yard.first, at(0))), Texts{"start 0#1 with 1 GB, 3 GB on 0"});
  static_cast<void>(yard.on(at(1), has(0, gb(3))));
  EXPECT_EQ(commands(yard.on(at(2), has(0, gb(3)))), Texts{"start 1#1 with 1 GB, 4 GB on 0"});
}

TEST(StartupGate, LeadsToAnotherGpuWhereOneIsOpen) {
  model::Capacity two = kOneGpu;
  two.gpus.push_back({.number = 1, .pci = "b", .memory = gb(8)});
  Yard yard(PlanBuilder().tasks(3, gb(1), {}).on_gpus(1, gb(4)), gated(), two);
  EXPECT_EQ(commands(yard.first),
            (Texts{"start 0#1 with 1 GB, 4 GB on 0", "start 1#1 with 1 GB, 4 GB on 1"}));
}

TEST(StartupGate, HoldsThoseThatHaveLoadedToo) {
  Yard yard(PlanBuilder().tasks(2, gb(1), {}).on_gpus(1, gb(4)).two_phase(), gated(), kOneGpu);
  yard.go(yard.first, at(0));
  EXPECT_EQ(commands(yard.loaded(0, at(1))), Texts{"train 0#1 with 1 GB, 4 GB on 0"});
  EXPECT_EQ(commands(yard.loaded(1, at(1))), Texts{});
  static_cast<void>(yard.on(at(2), has(0, gb(4))));
  EXPECT_EQ(commands(yard.on(at(3), has(0, gb(4)))), Texts{"train 1#1 with 1 GB, 4 GB on 0"});
}

TEST(StartupGate, IsNotThereWhereNobodyWantsIt) {
  model::Policy policy = gated();
  policy.gpu_settle_max = {};
  Yard yard(PlanBuilder().tasks(2, gb(1), {}).on_gpus(1, gb(4)), policy, kOneGpu);
  EXPECT_EQ(commands(yard.first),
            (Texts{"start 0#1 with 1 GB, 4 GB on 0", "start 1#1 with 1 GB, 4 GB on 0"}));
  EXPECT_EQ(yard.wakeup(), std::nullopt);
}

}  // namespace
}  // namespace trainyard::schedule

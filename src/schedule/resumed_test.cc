// A run that is resumed goes on with what its tasks had come to ask for, with the tries that they
// have left, and with what finished ones took.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "model/command.h"
#include "model/event.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/status.h"
#include "schedule/test_yard.h"

namespace trainyard::schedule {
namespace {

using ::testing::IsEmpty;
using Texts = std::vector<std::string>;

const model::Policy kResumes{.memory_remain = Bytes{0},
                             .gpu_memory_remain = Bytes{0},
                             .gpu_memory_least = gb(2),
                             .load_retries = 3,
                             .train_retries = 3};
const model::Policy kResumesAndLearns{.memory_remain = Bytes{0},
                                      .gpu_memory_remain = Bytes{0},
                                      .gpu_memory_least = gb(2),
                                      .auto_adjust = true};
/// A small one and a large one.
const model::Capacity kSmallBesideLarge{.memory = gb(10),
                                        .cpus = model::cpus(8),
                                        .gpus = {{.number = 0, .pci = "a", .memory = gb(8)},
                                                 {.number = 1, .pci = "b", .memory = gb(16)}}};

model::Plan resumed_with(const PlanBuilder& builder, std::vector<model::Reached> reached,
                         std::vector<model::TakenBefore> taken = {}) {
  model::Plan plan = builder.build();
  plan.reached = std::move(reached);
  plan.taken = std::move(taken);
  return plan;
}

model::AttemptEnded killed_for_memory(std::uint32_t task, std::uint32_t attempt, Bytes peak = {}) {
  return {.key = {{task}, attempt},
          .end = model::KilledBy{.signal = 9, .out_of_memory = true},
          .usage = {.memory_peak = peak}};
}

model::AttemptEnded ran_out_of_its_gpu(std::uint32_t task, std::uint32_t attempt) {
  return {.key = {{task}, attempt},
          .end = model::ExitedWith{1},
          .out_of_memory = "CUDA out of memory",
          .of_gpu = true};
}

TEST(Resumed, TaskAsksForTheMemoryThatItHadReached) {
  Yard yard(resumed_with(PlanBuilder().tasks(2, gb(2)), {{.task = {1}, .memory = gb(5)}}), kResumes,
            kTwoGpus);
  EXPECT_EQ(commands(yard.first), (Texts{"start 0#1 with 2 GB", "start 1#1 with 5 GB"}));
}

TEST(Resumed, TaskIsOwedItsReservationInALaterBatchAsWell) {
  Yard yard(PlanBuilder().tasks(3, gb(1)), kResumes, kTwoGpus);
  yard.go(yard.first, at(0));
  const model::Plan more =
      resumed_with(PlanBuilder().tasks(2, gb(2)), {{.task = {0}, .memory = gb(3)}});
  EXPECT_EQ(commands(yard.add(more, at(1))), (Texts{"start 3#1 with 3 GB", "start 4#1 with 2 GB"}));
}

TEST(Resumed, RunStartsNobodyBeforeAllOfItsBatchesAreThere) {
  Yard yard(PlanBuilder().tasks(1, gb(2)), kResumes, kTwoGpus);
  EXPECT_EQ(commands(yard.add(PlanBuilder().tasks(1, gb(8)).build(), at(1), true)), Texts{});
  EXPECT_EQ(commands(yard.add(PlanBuilder().tasks(1, gb(8)).priority(1).build(), at(1))),
            Texts{"start 2#1 with 8 GB"});
}

TEST(Resumed, TaskAsksForNoMoreThanThisMachineHas) {
  Yard yard(resumed_with(PlanBuilder().tasks(1, gb(2)), {{.task = {0}, .memory = gb(50)}}),
            kResumes, kTwoGpus);
  EXPECT_EQ(commands(yard.first), Texts{"start 0#1 with 10 GB"});
}

TEST(Resumed, TaskAsksForNoLessThanIsWritten) {
  Yard yard(resumed_with(PlanBuilder().tasks(1, gb(2)).on_gpus(1, gb(4)),
                         {{.task = {0}, .memory = gb(1), .gpu_memory = gb(3)}}),
            kResumes, kTwoGpus);
  EXPECT_EQ(commands(yard.first), Texts{"start 0#1 with 2 GB, 4 GB on 0"});
}

TEST(Resumed, TaskAsksForTheGpuMemoryThatItHadReached) {
  Yard yard(
      resumed_with(PlanBuilder().tasks(1, gb(1)).on_gpus(1, gb(3)),
                   {{.task = {0}, .memory = gb(1), .gpu_memory = gb(6), .tries = {.train = 1}}}),
      kResumes, kTwoGpus);
  EXPECT_EQ(commands(yard.go(yard.first, at(0))), Texts{"start 0#1 with 1 GB, 6 GB on 0"});
  EXPECT_EQ(
      changes(yard.on(at(1), ran_out_of_its_gpu(0, 1))).front(),
      "0#1 INTERRUPT OUT_OF_MEMORY: CUDA out of memory; retry 2 of 2, alone on the largest GPU");
}

TEST(Resumed, TaskThatWasToHaveTheLargestGpuForItselfHasIt) {
  Yard yard(
      resumed_with(PlanBuilder().tasks(1, gb(1)).on_gpus(1, gb(3)), {{.task = {0},
                                                                      .memory = gb(1),
                                                                      .gpu_memory = gb(5),
                                                                      .largest = true,
                                                                      .tries = {.train = 2}}}),
      kResumes, kSmallBesideLarge);
  EXPECT_EQ(commands(yard.first), Texts{"start 0#1 with 1 GB, 1 whole"});
  EXPECT_EQ(changes(yard.first).back(), "0#1 AVAILABLE: retry 2 of 2, alone on GPU 1");
  yard.go(yard.first, at(0));
  EXPECT_EQ(changes(yard.on(at(1), ran_out_of_its_gpu(0, 1))).front(),
            "0#1 EXCEPTION FAILED OUT_OF_MEMORY: out of memory, alone on GPU 1: CUDA out of "
            "memory (retry 2 of 2)");
}

TEST(Resumed, TaskOfTwoPhasesAsksForBoth) {
  Yard yard(resumed_with(PlanBuilder().tasks(1, gb(1)).on_gpus(1, gb(3)).two_phase(),
                         {{.task = {0}, .memory = gb(2), .gpu_memory = gb(6), .tries = {}}}),
            kResumes, kTwoGpus);
  EXPECT_EQ(commands(yard.first), Texts{"start 0#1 with 2 GB"});
  EXPECT_EQ(commands(yard.loaded(0, at(1))), Texts{"train 0#1 with 2 GB, 6 GB on 0"});
}

TEST(Resumed, TaskWithAnAutomaticNumberSharesWhatItHadReached) {
  Yard yard(resumed_with(PlanBuilder().tasks(2, gb(1)).on_gpus(1).learns_gpu_memory(),
                         {{.task = {1}, .memory = gb(1), .gpu_memory = gb(6), .tries = {}}}),
            kResumes, kTwoGpus);
  EXPECT_EQ(commands(yard.first),
            (Texts{"start 0#1 with 1 GB, 0 whole", "start 1#1 with 1 GB, 6 GB on 1"}));
}

TEST(Resumed, TaskHasTheTriesThatItHadLeftAndAtLeastOne) {
  const PlanBuilder one = PlanBuilder().tasks(1, gb(1));
  const auto tries_after = [&](std::uint8_t before) {
    Yard yard(resumed_with(one, {{.task = {0}, .memory = gb(1), .tries = {.train = before}}}),
              kResumes, kTwoGpus);
    std::uint32_t attempts = 0;
    model::Decision next = yard.first;
    while (!commands(next).empty()) {
      yard.go(next, at(1));
      next = yard.on(at(1), killed_for_memory(0, ++attempts));
    }
    return attempts;
  };
  EXPECT_EQ(tries_after(0), 3U);
  EXPECT_EQ(tries_after(1), 2U);
  EXPECT_EQ(tries_after(2), 1U);
  EXPECT_EQ(tries_after(3), 1U);
  EXPECT_EQ(tries_after(200), 1U);
}

TEST(Resumed, TaskIsToldWhatItReachesSoThatTheNextResumeKnows) {
  Yard yard(PlanBuilder().tasks(1, gb(1)).on_gpus(1, gb(3)), kResumes, kSmallBesideLarge);
  yard.go(yard.first, at(0));
  const model::Decision first = yard.on(at(1), killed_for_memory(0, 1, gb(2)));
  EXPECT_EQ(reached(first), Texts{"0 has reached 2 GB; tries 0/1/0/0"});
  yard.go(first, at(1));
  const model::Decision second = yard.on(at(2), ran_out_of_its_gpu(0, 2));
  EXPECT_EQ(reached(second), Texts{"0 has reached 2 GB, 3 GB on GPUs, alone; tries 0/2/0/0"});
  yard.go(second, at(2));
  EXPECT_THAT(reached(yard.on(at(3), ran_out_of_its_gpu(0, 3))), IsEmpty()) << "it has failed";
}

TEST(Resumed, TaskIsToldWhatItReachesWithoutANewProcess) {
  Yard yard(PlanBuilder().tasks(1, gb(1)).two_phase(), kResumes, kTwoGpus);
  yard.go(yard.first, at(0));
  static_cast<void>(yard.loaded(0, at(1)));
  const model::Decision again = yard.says(0, at(2), model::Said::OutOfMemory, "MemoryError");
  EXPECT_EQ(reached(again), Texts{"0 has reached 1.2 GB; tries 0/1/0/0"});
}

TEST(Resumed, TaskThatFailedOtherwiseHasReachedNothing) {
  Yard yard(PlanBuilder().tasks(1, gb(1)).retries({.failures = 2}), kResumes, kTwoGpus);
  yard.go(yard.first, at(0));
  EXPECT_THAT(reached(yard.ended(0, at(1), model::ExitedWith{1})), IsEmpty());
}

TEST(Resumed, GroupGoesOnWithWhatItsFinishedTasksTook) {
  model::Plan plan =
      resumed_with(PlanBuilder().tasks(4, gb(9)).learns_memory(), {},
                   {{.task = {0}, .memory = gb(2), .gpu_memory = {}, .gpu_memory_written = {}},
                    {.task = {1}, .memory = gb(2), .gpu_memory = {}, .gpu_memory_written = {}}});
  plan.tasks[0].before = plan.tasks[1].before = model::Verdict::Finished;
  const Yard yard(plan, kResumesAndLearns, kTwoGpus);
  EXPECT_EQ(commands(yard.first), (Texts{"start 2#1 with 2.4 GB", "start 3#1 with 2.4 GB"}));
  EXPECT_EQ(changes(yard.first),
            (Texts{"group 0 running", "2#1 AVAILABLE", "shape 0 learns of 2: 2.4 GB, 0 B on GPUs",
                   "3#1 AVAILABLE"}));
}

TEST(Resumed, GroupGoesOnWithTheRatioOfWhatWasTakenToWhatWasWrittenThen) {
  model::Plan plan = resumed_with(
      PlanBuilder().tasks(1, gb(1)).on_gpus(1, gb(2)).tasks(1, gb(1)).on_gpus(1, gb(4)), {},
      {{.task = {0}, .memory = gb(1), .gpu_memory = gb(3), .gpu_memory_written = gb(2)}});
  plan.tasks[0].before = model::Verdict::Finished;
  const Yard yard(plan, kResumesAndLearns, kTwoGpus);
  EXPECT_EQ(commands(yard.first), Texts{"start 1#1 with 1 GB, 6 GB on 0"});
}

}  // namespace
}  // namespace trainyard::schedule

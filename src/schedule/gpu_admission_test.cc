// Admission, retries and giving up of tasks that want GPUs.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "schedule/scheduler.h"
#include "schedule/test_yard.h"

namespace trainyard::schedule {
namespace {

using Texts = std::vector<std::string>;

const model::Policy kAll{.memory_remain = Bytes{0},
                         .gpu_memory_remain = Bytes{0},
                         .gpu_memory_least = gb(2),
                         .train_retries = 3};

/// Both GPUs as they are when only these tasks have something on the first.
model::GpusSampled seen(Bytes used = {}, std::vector<model::GpuUse> uses = {}) {
  return {.gpus = {{.used = used}, {}}, .uses = std::move(uses)};
}

model::GpuUse uses(std::uint32_t task, Bytes memory, std::uint32_t gpu = 0) {
  return {.key = {.task = {task}}, .gpu = {gpu}, .memory = memory};
}

TEST(GpuAdmission, PacksTasksByTheMemoryThatTheyAskFor) {
  Yard yard(PlanBuilder().tasks(5, gb(1)).on_gpus(1, gb(3)), kAll, kTwoGpus);
  EXPECT_EQ(commands(yard.first),
            (Texts{"start 0#1 with 1 GB, 3 GB on 0", "start 1#1 with 1 GB, 3 GB on 0",
                   "start 2#1 with 1 GB, 3 GB on 1", "start 3#1 with 1 GB, 3 GB on 1"}));
  EXPECT_EQ(changes(yard.first).back(),
            "shape 0: needs 3 GB on its GPU, GPU 0 has the most free memory: 2 GB");
}

TEST(GpuAdmission, LetsThoseShareAGpuThatAreWrittenToUseNoMoreThanAllOfIt) {
  Yard yard(PlanBuilder().tasks(4, gb(1)).on_gpus(1, gb(1)).sharing({.utilization = 600}), kAll,
            kTwoGpus);
  EXPECT_EQ(commands(yard.first),
            (Texts{"start 0#1 with 1 GB, 1 GB on 0", "start 1#1 with 1 GB, 1 GB on 1"}));
  yard.go(yard.first, at(0));
  EXPECT_EQ(commands(yard.ended(0, at(1))), Texts{"start 2#1 with 1 GB, 1 GB on 0"})
      << "though the driver may show its memory for a while";
}

TEST(GpuAdmission, LetsNoMoreShareAGpuThanOneOfThemPutsUpWith) {
  Yard yard(PlanBuilder()
                .tasks(1, gb(1))
                .on_gpus(1, gb(1), model::GpuIndex{0})
                .sharing({.max_per_gpu = 2})
                .tasks(4, gb(1))
                .on_gpus(1, gb(1), model::GpuIndex{0}),
            kAll, kTwoGpus);
  EXPECT_EQ(commands(yard.first),
            (Texts{"start 0#1 with 1 GB, 1 GB on 0", "start 1#1 with 1 GB, 1 GB on 0"}));
  yard.go(yard.first, at(0));
  EXPECT_EQ(commands(yard.ended(0, at(1))),
            (Texts{"start 2#1 with 1 GB, 1 GB on 0", "start 3#1 with 1 GB, 1 GB on 0",
                   "start 4#1 with 1 GB, 1 GB on 0"}))
      << "the others put up with any number";
}

TEST(GpuAdmission, KeepsRoomForOneThatCannotShareYet) {
  model::Policy policy = kAll;
  policy.passes_max = 1;
  Yard yard(PlanBuilder()
                .tasks(1, gb(1))
                .on_gpus(1, gb(1), model::GpuIndex{0})
                .sharing({.max_per_gpu = 1})
                .tasks(1, gb(1))
                .on_gpus(1, gb(1), model::GpuIndex{0})
                .tasks(2, gb(1))
                .on_gpus(1, gb(3), model::GpuIndex{1}),
            policy, kTwoGpus);
  EXPECT_EQ(commands(yard.first),
            (Texts{"start 0#1 with 1 GB, 1 GB on 0", "start 2#1 with 1 GB, 3 GB on 1",
                   "start 3#1 with 1 GB, 3 GB on 1"}))
      << "those on another card are in nobody's way";
}

TEST(GpuAdmission, GivesAWholeGpuToOneThatNamesNoMemory) {
  Yard yard(PlanBuilder().tasks(1, gb(1)).on_gpus(1, gb(3)).tasks(2, gb(1)).on_gpus(1), kAll,
            kTwoGpus);
  EXPECT_EQ(commands(yard.first),
            (Texts{"start 0#1 with 1 GB, 3 GB on 0", "start 1#1 with 1 GB, 1 whole"}));
  EXPECT_EQ(changes(yard.first).back(), "shape 1: needs a whole GPU, 0 of 2 GPUs without tasks");
}

TEST(GpuAdmission, LeavesAGpuToAnotherUserWhoComputesThere) {
  model::Policy policy = kAll;
  Yard yard(PlanBuilder().tasks(3, gb(1)).on_gpus(1), policy, kTwoGpus);
  yard.go(yard.first, at(0));
  model::GpusSampled reading = seen(gb(1));
  reading.gpus[0].other_user = 1001;
  yard.on(at(1), reading);
  // A task that runs there already goes on, but no other task starts there.
  static_cast<void>(yard.ended(0, at(2)));
  const model::Decision after = yard.on(at(3), reading);
  EXPECT_EQ(commands(after), Texts{});
  ASSERT_EQ(after.changes.size(), 1U);
  const auto* const room = std::get_if<model::HeadroomSeen>(after.changes.data());
  ASSERT_NE(room, nullptr);
  EXPECT_EQ(room->headroom.gpus[0].holders, 0);
  EXPECT_EQ(room->headroom.gpus[0].avoided_for, 1001U);
  EXPECT_EQ(room->headroom.gpus[1].avoided_for, std::nullopt);
  EXPECT_EQ(commands(yard.on(at(4), seen())), Texts{"start 2#1 with 1 GB, 0 whole"});

  policy.gpu_avoids_others = false;
  Yard sharing(PlanBuilder().tasks(3, gb(1)).on_gpus(1), policy, kTwoGpus);
  sharing.go(sharing.first, at(0));
  sharing.on(at(1), reading);
  static_cast<void>(sharing.ended(0, at(2)));
  EXPECT_EQ(commands(sharing.on(at(3), reading)), Texts{"start 2#1 with 1 GB, 0 whole"});
}

TEST(GpuAdmission, DoesNotHoldBackThoseThatWantNoGpu) {
  Yard yard(PlanBuilder().tasks(3, gb(1)).on_gpus(1).tasks(2, gb(1)), kAll, kTwoGpus);
  EXPECT_EQ(commands(yard.first),
            (Texts{"start 0#1 with 1 GB, 0 whole", "start 1#1 with 1 GB, 1 whole",
                   "start 3#1 with 1 GB", "start 4#1 with 1 GB"}));
}

TEST(GpuAdmission, TakesTheGpuThatIsWishedFor) {
  Yard yard(PlanBuilder().tasks(3, gb(1)).on_gpus(1, gb(4), model::GpuIndex{1}), kAll, kTwoGpus);
  EXPECT_EQ(commands(yard.first),
            (Texts{"start 0#1 with 1 GB, 4 GB on 1", "start 1#1 with 1 GB, 4 GB on 1"}));
}

TEST(GpuAdmission, StartsTheNextWhenTheDriverShowsTheMemoryFree) {
  Yard yard(PlanBuilder().tasks(3, gb(1)).on_gpus(1, gb(6)), kAll, kTwoGpus);
  yard.go(yard.first, at(0));
  yard.on(at(1), seen(gb(6), {uses(0, gb(6))}));
  EXPECT_EQ(commands(yard.ended(0, at(2))), Texts{});
  EXPECT_EQ(commands(yard.on(at(3), seen(gb(6)))), Texts{});
  EXPECT_EQ(commands(yard.on(at(4), seen())), Texts{"start 2#1 with 1 GB, 6 GB on 0"});
}

TEST(GpuAdmission, WaitsForTheDriverForABoundedTime) {
  Yard yard(PlanBuilder().tasks(3, gb(1)).on_gpus(1), kAll, kTwoGpus);
  yard.go(yard.first, at(0));
  yard.on(at(1), seen(gb(3), {uses(0, gb(3))}));
  static_cast<void>(yard.ended(0, at(2)));
  EXPECT_EQ(commands(yard.on(at(3), seen(gb(3)))), Texts{});
  EXPECT_EQ(yard.wakeup(), at(12));
  EXPECT_EQ(commands(yard.on(at(12), model::TimePassed{})), Texts{"start 2#1 with 1 GB, 0 whole"});
}

TEST(GpuAdmission, SaysAfterASecondThatTheDriverDoesNotShowTheMemoryFree) {
  Yard yard(PlanBuilder().tasks(3, gb(1)).on_gpus(1, gb(6)), kAll, kTwoGpus);
  yard.go(yard.first, at(0));
  yard.on(at(1), seen(gb(6), {uses(0, gb(6))}));
  static_cast<void>(yard.ended(0, at(2)));
  EXPECT_EQ(changes(yard.on(at(3), seen(gb(6)))).back(),
            "shape 0: needs 6 GB on its GPU, GPU 0 has the most free memory: 2 GB, the driver does "
            "not report 6 GB of ended tasks as free yet");
}

TEST(GpuAdmission, RetriesWithHalfAsMuchMoreOfAGpusMemory) {
  Yard yard(PlanBuilder().tasks(1, gb(1)).on_gpus(1, gb(3)), kAll, kTwoGpus);
  yard.go(yard.first, at(0));
  const model::Decision ended =
      yard.on(at(5), model::AttemptEnded{.key = {{0}, 1},
                                         .end = model::ExitedWith{1},
                                         .usage = {.gpu_memory_peak = gb(2)},
                                         .out_of_memory = "CUDA out of memory",
                                         .of_gpu = true});
  EXPECT_EQ(changes(ended).front(),
            "0#1 INTERRUPT OUT_OF_MEMORY: CUDA out of memory; retrying with 4.5 GB on its GPU");
  EXPECT_EQ(commands(ended), Texts{"start 0#2 with 1 GB, 4.5 GB on 0"});
}

TEST(GpuAdmission, RetriesWithWhatWasSeenWhenThatIsMore) {
  Yard yard(PlanBuilder().tasks(1, gb(1)).on_gpus(1, gb(3)), kAll, kTwoGpus);
  yard.go(yard.first, at(0));
  const model::Decision ended =
      yard.on(at(5), model::AttemptEnded{.key = {{0}, 1},
                                         .end = model::ExitedWith{1},
                                         .usage = {.gpu_memory_peak = gb(7)},
                                         .out_of_memory = "CUDA out of memory",
                                         .of_gpu = true});
  EXPECT_EQ(commands(ended), Texts{"start 0#2 with 1 GB, 7 GB on 1"});
}

TEST(GpuAdmission, GrowsMemoryOfTheHostWhenThatRanOut) {
  Yard yard(PlanBuilder().tasks(1, gb(1)).on_gpus(1, gb(3)), kAll, kTwoGpus);
  yard.go(yard.first, at(0));
  const model::Decision ended =
      yard.ended(0, at(5), model::KilledBy{.signal = 9, .out_of_memory = true});
  EXPECT_EQ(commands(ended), Texts{"start 0#2 with 1.2 GB, 3 GB on 0"});
}

TEST(GpuAdmission, GrowsNoMemoryOfTheHostForAGpuThatTheTaskWasNotGiven) {
  Yard yard(PlanBuilder().tasks(1, gb(1)), {.memory_remain = Bytes{0}, .train_retries = 2},
            kTwoGpus);
  yard.go(yard.first, at(0));
  model::AttemptEnded ends{.key = {{0}, 1},
                           .end = model::ExitedWith{1},
                           .usage = {.memory_peak = gb(3)},
                           .out_of_memory = "CUDA out of memory",
                           .of_gpu = true};
  const model::Decision first = yard.on(at(5), ends);
  EXPECT_EQ(changes(first).front(),
            "0#1 INTERRUPT OUT_OF_MEMORY: CUDA out of memory; retrying the same way: the task "
            "reserves no GPU");
  EXPECT_EQ(commands(first), Texts{"start 0#2 with 1 GB"});
  yard.go(first, at(5));
  ends.key.attempt = 2;
  EXPECT_EQ(changes(yard.on(at(6), ends)).front(),
            "0#2 EXCEPTION FAILED OUT_OF_MEMORY: out of memory; the task reserves no GPU: CUDA "
            "out of memory (retry 1 of 1)");
}

TEST(GpuAdmission, KeepsRoomForTheOldestThatWasPassedOften) {
  model::Policy policy = kAll;
  policy.passes_max = 2;
  // Small ones without an end in sight would pass the two-GPU task for ever.
  Yard yard(PlanBuilder()
                .tasks(1, gb(1))
                .on_gpus(1, gb(6))
                .tasks(1, gb(1))
                .on_gpus(2, gb(7))
                .tasks(6, gb(1))
                .on_gpus(1, gb(1)),
            policy, kTwoGpus);
  yard.go(yard.first, at(0));
  EXPECT_EQ(commands(yard.first),
            (Texts{"start 0#1 with 1 GB, 6 GB on 0", "start 2#1 with 1 GB, 1 GB on 0",
                   "start 3#1 with 1 GB, 1 GB on 0", "start 4#1 with 1 GB, 1 GB on 1"}));
}

TEST(GpuStages, GetTheirGpuWhenTheyTrain) {
  Yard yard(PlanBuilder().tasks(2, gb(1), model::cpus(1)).on_gpus(1).two_phase(), kAll, kTwoGpus);
  EXPECT_EQ(commands(yard.first), (Texts{"start 0#1 with 1 GB", "start 1#1 with 1 GB"}));
  EXPECT_EQ(commands(yard.loaded(0, at(1))), Texts{"train 0#1 with 1 GB, 0 whole"});
  EXPECT_EQ(commands(yard.loaded(1, at(2))), Texts{"train 1#1 with 1 GB, 1 whole"});
}

TEST(GpuStages, KeepRoomForTheOldestThatWasPassedOftenAlsoWhileTheKeeperIsSilent) {
  model::Policy policy = kAll;
  policy.passes_max = 1;
  Yard yard(PlanBuilder()
                .tasks(1, gb(1), model::cpus(1))
                .on_gpus(1, gb(6))
                .two_phase()
                .tasks(1, gb(1), model::cpus(1))
                .on_gpus(2, gb(7))
                .two_phase()
                .tasks(2, gb(1), model::cpus(1))
                .on_gpus(1, gb(4))
                .two_phase(),
            policy, kTwoGpus);
  EXPECT_EQ(commands(yard.loaded(0, at(1))), Texts{"train 0#1 with 1 GB, 6 GB on 0"});
  EXPECT_EQ(commands(yard.loaded(1, at(2))), Texts{});
  EXPECT_EQ(commands(yard.loaded(2, at(3))), Texts{"train 2#1 with 1 GB, 4 GB on 1"})
      << "it passes";
  static_cast<void>(yard.on(at(4), model::KeeperSilent{}));
  EXPECT_EQ(commands(yard.loaded(3, at(5))), Texts{});
}

TEST(GpuStages, TrainAgainOnTheSameGpuWhenItHasMore) {
  Yard yard(PlanBuilder().tasks(1, gb(1), model::cpus(1)).on_gpus(1, gb(3)).two_phase(), kAll,
            kTwoGpus);
  static_cast<void>(yard.loaded(0, at(1)));
  const model::Decision again =
      yard.on(at(2), model::StageReported{.key = {{0}, 1},
                                          .said = model::Said::OutOfMemory,
                                          .message = "CUDA out of memory",
                                          .of_gpu = true});
  EXPECT_EQ(changes(again).front(),
            "0#1 INTERRUPT OUT_OF_MEMORY: CUDA out of memory; retrying with 4.5 GB on its GPU");
  EXPECT_EQ(commands(again), Texts{"train 0#1 with 1 GB, 4.5 GB on 0"});
}

TEST(GpuStages, StartAnewWhenTheirGpuHasNoMore) {
  Yard yard(PlanBuilder()
                .tasks(2, gb(1), model::cpus(1))
                .on_gpus(1, gb(4), model::GpuIndex{0})
                .two_phase(),
            kAll, kTwoGpus);
  static_cast<void>(yard.loaded(0, at(1)));
  static_cast<void>(yard.loaded(1, at(1)));
  const model::Decision again =
      yard.on(at(2), model::StageReported{.key = {{0}, 1},
                                          .said = model::Said::OutOfMemory,
                                          .message = "CUDA out of memory",
                                          .of_gpu = true});
  EXPECT_EQ(commands(again), Texts{"stop 0#1"});
  const model::Decision ended = yard.ended(0, at(3), model::ExitedWith{1});
  EXPECT_EQ(changes(ended).front(),
            "0#1 INTERRUPT OUT_OF_MEMORY: out of memory; retrying with 6 GB on its GPU");
}

TEST(GpuStages, StartAnewWhenTheirPartIsFreeWhereOthersHaveTakenIt) {
  Yard yard(PlanBuilder()
                .tasks(2, gb(1), model::cpus(1))
                .on_gpus(1, gb(3), model::GpuIndex{0})
                .two_phase(),
            kAll, kTwoGpus);
  static_cast<void>(yard.loaded(0, at(1)));
  static_cast<void>(yard.loaded(1, at(1)));
  static_cast<void>(yard.on(at(2), seen(gb(6), {uses(1, gb(6))})));
  const model::Decision again =
      yard.on(at(2), model::StageReported{.key = {{0}, 1},
                                          .said = model::Said::OutOfMemory,
                                          .message = "CUDA out of memory",
                                          .of_gpu = true});
  EXPECT_EQ(commands(again), Texts{"stop 0#1"}) << "it would run out of memory again at once";
  const model::Decision ended = yard.ended(0, at(3), model::ExitedWith{1});
  EXPECT_EQ(changes(ended).front(),
            "0#1 INTERRUPT OUT_OF_MEMORY: out of memory; other tasks used 3 GB of GPU 0 more than "
            "was reserved for them; retrying with 3 GB on its GPU");
  EXPECT_EQ(commands(ended), Texts{"start 0#2 with 1 GB"}) << "it loads meanwhile";
  EXPECT_EQ(commands(yard.loaded(0, at(4), 2)), Texts{});
  static_cast<void>(yard.ended(1, at(5)));
  EXPECT_EQ(commands(yard.on(at(6), seen())), Texts{"train 0#2 with 1 GB, 3 GB on 0"});
}

TEST(GpuStages, AreNotHeldBackForOneThatWaitsForTheGpuThatTheyHold) {
  model::Policy policy = kAll;
  policy.passes_max = 0;  // Room is kept at once.
  model::Capacity one_cpu = kTwoGpus;
  one_cpu.cpus = model::cpus(1);
  one_cpu.gpus.pop_back();
  Yard yard(PlanBuilder()
                .tasks(1, gb(1), model::cpus(1))
                .on_gpus(1, gb(5))
                .two_phase()
                .tasks(1, gb(1), model::cpus(1))
                .two_phase()
                .tasks(1, gb(1), model::cpus(1))
                .on_gpus(1, gb(4))
                .two_phase(),
            policy, one_cpu);
  static_cast<void>(yard.loaded(2, at(1)));  // It trains on the GPU,
  static_cast<void>(yard.loaded(0, at(1)));  // this one wants it,
  static_cast<void>(yard.loaded(1, at(1)));  // and this one a CPU.
  const model::Decision again =
      yard.on(at(2), model::StageReported{.key = {{2}, 1},
                                          .said = model::Said::OutOfMemory,
                                          .message = "CUDA out of memory",
                                          .of_gpu = true});
  EXPECT_EQ(changes(again).front(),
            "2#1 INTERRUPT OUT_OF_MEMORY: CUDA out of memory; retrying with 6 GB on its GPU");
  EXPECT_EQ(commands(again), Texts{"train 2#1 with 1 GB, 6 GB on 0"});
}

TEST(GpuStages, AreLoadedBesideThoseThatWantNoGpu) {
  // Eight of the first kind are as many as the CPUs could train; the others are not held back by
  // that.
  Yard yard(PlanBuilder()
                .tasks(20, mb(10), model::cpus(1))
                .two_phase()
                .tasks(2, mb(10), model::cpus(1))
                .on_gpus(1)
                .two_phase(),
            kAll, kTwoGpus);
  const Texts started = commands(yard.first);
  ASSERT_EQ(started.size(), 10U);
  EXPECT_EQ(started[7], "start 7#1 with 10 MB");
  EXPECT_EQ(started[8], "start 20#1 with 10 MB");
  EXPECT_EQ(started[9], "start 21#1 with 10 MB");
}

TEST(GpuLoss, EndsTheWaitingOfThoseThatFitNowhereElse) {
  Yard yard(PlanBuilder().tasks(3, gb(1)).on_gpus(2).tasks(1, gb(1)).on_gpus(1), kAll, kTwoGpus);
  yard.go(yard.first, at(0));
  const model::GpusSampled lost{.gpus = {{.present = false}, {}}, .uses = {}};
  EXPECT_EQ(changes(yard.on(at(1), lost)),
            (Texts{"shape 0: needs 2 whole GPUs, 0 of 1 GPU without tasks, GPU 0 does not answer "
                   "(or is avoided after it dropped out)",
                   "shape 1: needs a whole GPU, 0 of 1 GPU without tasks, GPU 0 does not answer "
                   "(or is avoided after it dropped out)"}));
  static_cast<void>(yard.ended(0, at(2), model::ExitedWith{1}));
  EXPECT_EQ(commands(yard.on(at(3), lost)), Texts{"start 3#1 with 1 GB, 1 whole"});
  EXPECT_EQ(changes(yard.on(at(60), lost)), Texts{});
  const model::Decision given_up = yard.on(at(61), lost);
  EXPECT_EQ(changes(given_up),
            (Texts{"0#1 EXCEPTION FAILED CANNOT_START: no GPU that it fits on is left: some GPUs "
                   "do not answer",
                   "1#0 INIT SKIPPED: no GPU that it fits on is left: some GPUs do not answer",
                   "2#0 INIT SKIPPED: no GPU that it fits on is left: some GPUs do not answer",
                   "shape 0: "}));
}

TEST(GpuLoss, IsForgottenWhenItAnswersAgain) {
  Yard yard(PlanBuilder().tasks(2, gb(1)).on_gpus(2), kAll, kTwoGpus);
  yard.go(yard.first, at(0));
  const model::GpusSampled lost{.gpus = {{.present = false}, {}}, .uses = {}};
  yard.on(at(1), lost);
  static_cast<void>(yard.ended(0, at(2)));
  static_cast<void>(yard.on(at(20), seen()));
  EXPECT_EQ(commands(yard.on(at(30), seen())), Texts{"start 1#1 with 1 GB, 0,1 whole"});
}

TEST(GpuNeverFits, SaysWhatThereIs) {
  const auto why = [](const model::Request& request, const model::Capacity& capacity = kTwoGpus) {
    const auto misfit = never_fits(request, kAll, capacity);
    return misfit ? misfit->why : std::string();
  };
  EXPECT_EQ(why({.gpus = 1}), "");
  EXPECT_EQ(why({.gpus = 1}, kMachine), "needs a GPU, this machine has none");
  EXPECT_EQ(why({.gpus = 2}, kMachine), "needs 2 GPUs, this machine has none");
  model::Capacity failed = kMachine;
  failed.no_gpus_reason = "the driver does not answer";
  EXPECT_EQ(why({.gpus = 1}, failed),
            "needs a GPU, this machine has none (the driver does not answer)");
  EXPECT_EQ(why({.gpus = 3}), "needs 3 GPUs, this machine has 2; request at most 2");
  EXPECT_EQ(why({.gpus = 3, .gpu_memory = gb(9)}), "needs 3 GPUs, this machine has 2")
      << "no number of GPUs would help";
  model::Capacity slices = kTwoGpus;
  for (model::Gpu& gpu : slices.gpus) gpu.slice = 0;
  EXPECT_EQ(why({.gpus = 3}, slices), "needs 3 GPUs, this machine has 2; request at most 1");
  EXPECT_EQ(
      why({.gpus = 1, .gpu_memory = gb(9)}),
      "needs 9 GB of memory on a GPU, the largest here has 8 GB available after what is kept free; "
      "request at most 8GB (if no other process uses any)");
  EXPECT_EQ(why({.gpus = 1, .gpu_memory = gb(1), .gpu = model::GpuIndex{2}}),
            "needs 'cuda:2', this machine has 2 GPUs ('cuda:0' to 'cuda:1')");
}

}  // namespace
}  // namespace trainyard::schedule

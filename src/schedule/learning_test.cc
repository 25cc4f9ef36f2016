// Estimates for tasks, learned from the use of earlier ones of their kind.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/terms.h"
#include "schedule/test_yard.h"

namespace trainyard::schedule {
namespace {

using Texts = std::vector<std::string>;

const model::Policy kLearns{.memory_remain = Bytes{0},
                            .gpu_memory_remain = Bytes{0},
                            .gpu_memory_least = gb(2),
                            .train_retries = 5,
                            .auto_adjust = true};

model::AttemptEnded ended(std::uint32_t task, Bytes memory, Bytes gpu_memory = {}) {
  return {.key = {{task}, 1},
          .end = model::ExitedWith{0},
          .usage = {.memory_peak = memory, .gpu_memory_peak = gpu_memory}};
}

TEST(Learning, GivesTheNextWhatTheFirstTook) {
  Yard yard(PlanBuilder().tasks(5, gb(6)).learns_memory(), kLearns, kTwoGpus);
  EXPECT_EQ(commands(yard.go(yard.first, at(0))), Texts{"start 0#1 with 6 GB"});
  EXPECT_EQ(commands(yard.on(at(1), ended(0, gb(2)))),
            (Texts{"start 1#1 with 2.4 GB", "start 2#1 with 2.4 GB", "start 3#1 with 2.4 GB",
                   "start 4#1 with 2.4 GB"}));
}

TEST(Learning, DoesNotMakeANumberSmallerThatSomebodyWrote) {
  Yard yard(PlanBuilder().tasks(3, gb(6)), kLearns, kTwoGpus);
  yard.go(yard.first, at(0));
  EXPECT_EQ(commands(yard.on(at(1), ended(0, gb(2)))), Texts{"start 1#1 with 6 GB"});
}

TEST(Learning, MakesItLargerWhenOthersOfItsKindTookMore) {
  Yard yard(PlanBuilder().tasks(3, gb(6)), kLearns, kTwoGpus);
  yard.go(yard.first, at(0));
  EXPECT_EQ(commands(yard.on(at(1), ended(0, gb(7)))), Texts{"start 1#1 with 7 GB"});
}

TEST(Learning, RaisesANumberThatMayGrowByWhatOthersTookAndAMargin) {
  Yard yard(PlanBuilder().tasks(3, gb(6)).learns_memory().at_least(), kLearns, kTwoGpus);
  yard.go(yard.first, at(0));
  EXPECT_EQ(commands(yard.on(at(1), ended(0, gb(7)))), Texts{"start 1#1 with 8.4 GB"});
}

TEST(Learning, MakesANumberThatMayGrowNoSmallerThanItIsWritten) {
  Yard yard(PlanBuilder().tasks(3, gb(6)).learns_memory().at_least(), kLearns, kTwoGpus);
  yard.go(yard.first, at(0));
  EXPECT_EQ(commands(yard.on(at(1), ended(0, gb(2)))), Texts{"start 1#1 with 6 GB"});
}

TEST(Learning, SharesACardFromTheFirstTaskOnWhereTheNumberMayGrow) {
  model::Policy off = kLearns;
  off.auto_adjust = false;
  Yard yard(PlanBuilder().tasks(6, gb(1)).on_gpus(1, gb(3)).learns_gpu_memory().at_least(), off,
            kTwoGpus);
  EXPECT_EQ(commands(yard.go(yard.first, at(0))),
            (Texts{"start 0#1 with 1 GB, 3 GB on 0", "start 1#1 with 1 GB, 3 GB on 0",
                   "start 2#1 with 1 GB, 3 GB on 1", "start 3#1 with 1 GB, 3 GB on 1"}));
  for (const std::uint32_t task : {0U, 1U}) {
    static_cast<void>(yard.on(at(1), ended(task, gb(1), gb(5))));
  }
  EXPECT_EQ(commands(yard.on(at(1), model::GpusSampled{.gpus = {{}, {}}, .uses = {}})),
            Texts{"start 4#1 with 1 GB, 6 GB on 0"})
      << "though what is written is not raised here";
}

TEST(Learning, IsNeverUnderWhatOneThatRunsHasTaken) {
  Yard yard(PlanBuilder().tasks(4, gb(4)).learns_memory(), kLearns, kTwoGpus);
  yard.go(yard.first, at(0));
  yard.on(at(1), model::Sampled{.memory_available = gb(6),
                                .tasks = {{.key = {{0}, 1}, .memory = gb(1)},
                                          {.key = {{1}, 1}, .memory = gb(3)}}});
  EXPECT_EQ(commands(yard.on(at(2), ended(0, gb(1)))),
            (Texts{"start 2#1 with 3 GB", "start 3#1 with 3 GB"}));
}

TEST(Learning, IsLeftAloneWhereItIsSwitchedOff) {
  model::Policy off = kLearns;
  off.auto_adjust = false;
  Yard yard(PlanBuilder().tasks(3, gb(6)).learns_memory(), off, kTwoGpus);
  yard.go(yard.first, at(0));
  EXPECT_EQ(commands(yard.on(at(1), ended(0, gb(2)))), Texts{"start 1#1 with 6 GB"});
}

TEST(Learning, ProbesWithAWholeCardAndPacksTheRest) {
  Yard yard(PlanBuilder().tasks(6, gb(1)).on_gpus(1).learns_gpu_memory(), kLearns, kTwoGpus);
  EXPECT_EQ(commands(yard.go(yard.first, at(0))),
            (Texts{"start 0#1 with 1 GB, 0 whole", "start 1#1 with 1 GB, 1 whole"}));
  static_cast<void>(yard.on(at(1), ended(0, gb(1), gb(2))));
  EXPECT_EQ(commands(yard.on(at(1), model::GpusSampled{.gpus = {{}, {}}, .uses = {}})),
            (Texts{"start 2#1 with 1 GB, 2.4 GB on 0", "start 3#1 with 1 GB, 2.4 GB on 0",
                   "start 4#1 with 1 GB, 2.4 GB on 0"}));
}

TEST(Learning, SaysOfOneThatIsGivenAWholeCardWhatItsKindWasSeenToHave) {
  Yard yard(PlanBuilder().tasks(3, gb(1)).on_gpus(1).learns_gpu_memory(), kLearns, kTwoGpus);
  const Texts waits = changes(yard.first);
  EXPECT_EQ(waits.back(),
            "shape 0: needs a whole GPU until a task of its kind has ended and its GPU memory is "
            "known, 0 of 2 GPUs without tasks");
  yard.go(yard.first, at(0));
  const auto seen = [&yard](int when, Bytes had) {
    return changes(yard.on(
        at(when), model::GpusSampled{.gpus = {{.used = had}, {}},
                                     .uses = {{.key = {{0}, 1}, .gpu = {0}, .memory = had}}}));
  };
  static_cast<void>(seen(1, gb(4)));
  EXPECT_EQ(seen(2, mb(4200)), Texts{}) << "not for each megabyte";
  EXPECT_EQ(seen(3, gb(5)).at(0),
            "shape 0: needs a whole GPU until a task of its kind has ended and its GPU memory is "
            "known (5 GB seen so far), 0 of 2 GPUs without tasks");
}

/// The reservation of the fourth after three that took 2, 3 and 6 GB of GPUs of their own.
Texts fourth_after_2_3_and_6(const PlanBuilder& plan, const model::Policy& policy = kLearns) {
  model::Capacity three = kTwoGpus;
  three.gpus.push_back({.number = 2, .pci = "c", .memory = gb(8)});
  Yard yard(plan, policy, three);
  yard.go(yard.first, at(0));
  static_cast<void>(yard.on(at(1), ended(0, gb(1), gb(2))));
  static_cast<void>(yard.on(at(1), ended(1, gb(1), gb(3))));
  static_cast<void>(yard.on(at(1), ended(2, gb(1), gb(6))));
  return commands(yard.on(at(1), model::GpusSampled{.gpus = {{}, {}, {}}, .uses = {}}));
}

TEST(Learning, ReservesOfASharedGpuWhatTheMiddleOneTook) {
  const PlanBuilder four = PlanBuilder().tasks(4, gb(1)).on_gpus(1).learns_gpu_memory();
  EXPECT_EQ(fourth_after_2_3_and_6(four), Texts{"start 3#1 with 1 GB, 3.6 GB on 0"});
}

TEST(Learning, ReservesWhatNearlyAllTookForOneThatIsNotTriedAgain) {
  const PlanBuilder four = PlanBuilder().tasks(4, gb(1)).on_gpus(1).learns_gpu_memory();
  const Texts enough{"start 3#1 with 1 GB, 7.2 GB on 0"};
  EXPECT_EQ(fourth_after_2_3_and_6(PlanBuilder(four).retries({.out_of_memory = 0})), enough);
  EXPECT_EQ(fourth_after_2_3_and_6(PlanBuilder(four).gpu_memory_limit(model::GpuMemoryLimit::Hard)),
            enough);
  for (const int tries : {1, 0}) {
    model::Policy once = kLearns;
    once.train_retries = tries;
    EXPECT_EQ(fourth_after_2_3_and_6(four, once), enough) << tries;
  }
}

TEST(Learning, KeepsAskingForAWholeCardWhereNobodySawWhatWasTaken) {
  Yard yard(PlanBuilder().tasks(3, gb(1)).on_gpus(1).learns_gpu_memory(), kLearns, kTwoGpus);
  yard.go(yard.first, at(0));
  static_cast<void>(yard.on(at(1), ended(0, gb(1))));
  EXPECT_EQ(commands(yard.on(at(1), model::GpusSampled{.gpus = {{}, {}}, .uses = {}})),
            Texts{"start 2#1 with 1 GB, 0 whole"});
}

TEST(Learning, WaitsForWhatItLearnedWhereOthersHaveTheCard) {
  model::Capacity one = kTwoGpus;
  one.gpus.pop_back();
  Yard yard(PlanBuilder().tasks(3, gb(1)).on_gpus(1).learns_gpu_memory(), kLearns, one);
  yard.go(yard.first, at(0));
  static_cast<void>(yard.on(at(1), ended(0, gb(1), gb(4))));
  // Others take most of it: the rest is too little, and a smaller request would not help.
  const model::GpusSampled others{.gpus = {{.used = gb(6)}}, .uses = {}};
  EXPECT_EQ(commands(yard.on(at(20), others)), Texts{});
  EXPECT_EQ(commands(yard.on(at(30), model::GpusSampled{.gpus = {{}}, .uses = {}})),
            Texts{"start 1#1 with 1 GB, 4.8 GB on 0"});
}

TEST(Learning, TakesWhatACappedTaskHadForNothingThatIsNeeded) {
  Yard yard(PlanBuilder().tasks(3, gb(1)).on_gpus(1).learns_gpu_memory(), kLearns, kTwoGpus);
  yard.go(yard.first, at(0));
  model::AttemptEnded capped = ended(0, gb(1), gb(2));
  capped.usage.gpu_capped = true;
  static_cast<void>(yard.on(at(1), capped));
  EXPECT_EQ(commands(yard.on(at(1), model::GpusSampled{.gpus = {{}, {}}, .uses = {}})),
            Texts{"start 2#1 with 1 GB, 0 whole"});
}

TEST(Learning, IsToldWhenItBeginsAndWhenItHasChangedByATenth) {
  Yard yard(PlanBuilder().tasks(9, gb(9)).learns_memory(), kLearns, kTwoGpus);
  yard.go(yard.first, at(0));
  const auto next = [&](std::uint32_t task, Bytes peak) {
    Texts told = changes(yard.go(yard.on(at(1), ended(task, peak)), at(1)));
    std::erase_if(told, [](const std::string& it) { return !it.contains("learns"); });
    return told;
  };
  EXPECT_EQ(next(0, gb(5)), Texts{"shape 0 learns of 1: 6 GB, 0 B on GPUs"});
  EXPECT_EQ(next(1, gb(5)), Texts{});
  EXPECT_EQ(next(2, Bytes{5'500'000'000}), Texts{"shape 0 learns of 3: 6.6 GB, 0 B on GPUs"});
}

TEST(Learning, OfAGroupIsToldOfAKindOfWhichNoneHasEnded) {
  model::Capacity one_gpu = kTwoGpus;
  one_gpu.gpus.pop_back();
  Yard yard(PlanBuilder().tasks(1, gb(1)).on_gpus(1, gb(4)).tasks(1, gb(1)).on_gpus(1, gb(5)),
            kLearns, one_gpu);
  yard.go(yard.first, at(0));
  static_cast<void>(yard.on(at(1), ended(0, gb(1), gb(6))));
  EXPECT_EQ(changes(yard.on(at(2), model::GpusSampled{.gpus = {{}}, .uses = {}})),
            (Texts{"1#1 AVAILABLE", "shape 1 learns of 0: 0 B, 7.5 GB on GPUs", "shape 1: "}));
}

TEST(Learning, TellsARetryWhatOthersOfItsKindHave) {
  Yard yard(PlanBuilder().tasks(3, gb(1)).on_gpus(1, gb(2), model::GpuIndex{0}), kLearns, kTwoGpus);
  yard.go(yard.first, at(0));
  const model::GpusSampled seen{.gpus = {{.used = gb(6)}, {}},
                                .uses = {{.key = {{0}, 1}, .gpu = {0}, .memory = gb(3)},
                                         {.key = {{1}, 1}, .gpu = {0}, .memory = gb(3)}}};
  yard.on(at(1), seen);
  const model::AttemptEnded failed{.key = {{2}, 1},
                                   .end = model::ExitedWith{1},
                                   .out_of_memory = "CUDA out of memory",
                                   .of_gpu = true};
  static_cast<void>(yard.on(at(2), failed));
  static_cast<void>(yard.on(at(2), seen));
  static_cast<void>(yard.on(at(3), ended(0, gb(1), gb(3))));
  EXPECT_EQ(commands(yard.on(at(3), model::GpusSampled{.gpus = {{.used = gb(3)}, {}},
                                                       .uses = {seen.uses.back()}})),
            Texts{"start 2#2 with 1 GB, 3 GB on 0"});
}

}  // namespace
}  // namespace trainyard::schedule

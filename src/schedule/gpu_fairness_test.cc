// Out of memory on a GPU that several tasks share: the task at fault, the task that has to go, and
// what a task gets before its memory is reported to be too little.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "schedule/test_yard.h"

namespace trainyard::schedule {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Texts = std::vector<std::string>;

const model::Policy kFair{.memory_remain = Bytes{0},
                          .gpu_memory_remain = Bytes{0},
                          .gpu_memory_least = gb(2),
                          .train_retries = 3};
/// A small one and a large one.
const model::Capacity kSmallAndLarge{.memory = gb(10),
                                     .cpus = model::cpus(8),
                                     .gpus = {{.number = 0, .pci = "a", .memory = gb(8)},
                                              {.number = 1, .pci = "b", .memory = gb(16)}}};

/// A reading of what tasks, and strangers next to them, have on the first GPU.
model::GpusSampled first_has(const std::vector<std::pair<std::uint32_t, Bytes>>& tasks,
                             Bytes strangers = {}) {
  model::GpusSampled seen{.gpus = {{.used = strangers, .of_strangers = strangers}, {}}, .uses = {}};
  for (const auto& [task, memory] : tasks) {
    seen.uses.push_back({.key = {.task = {task}}, .gpu = {0}, .memory = memory});
    seen.gpus.front().used += memory;
  }
  return seen;
}

model::AttemptEnded ran_out_of_gpu(std::uint32_t task, std::uint32_t attempt = 1, Bytes peak = {},
                                   std::string says = "CUDA out of memory") {
  return {.key = {{task}, attempt},
          .end = model::ExitedWith{1},
          .usage = {.gpu_memory_peak = peak},
          .out_of_memory = std::move(says),
          .of_gpu = true};
}

/// Two tasks of 3 GB each on the first of two GPUs of 8 GB.
Yard two_on_one_gpu(const model::Policy& policy = kFair) {
  Yard yard(PlanBuilder().tasks(2, gb(1)).on_gpus(1, gb(3), model::GpuIndex{0}), policy, kTwoGpus);
  yard.go(yard.first, at(0));
  return yard;
}

TEST(GpuFairness, CountsNoTryOfOneWhoseNeighbourHasMoreThanWasReserved) {
  Yard yard = two_on_one_gpu();
  static_cast<void>(yard.on(at(1), first_has({{0, gb(2)}, {1, gb(5)}})));
  const model::Decision ended = yard.on(at(2), ran_out_of_gpu(0));
  EXPECT_EQ(changes(ended).front(),
            "0#1 INTERRUPT OUT_OF_MEMORY: CUDA out of memory; other tasks used 2 GB of GPU 0 more "
            "than was reserved for them; retrying with 3 GB on its GPU");
}

TEST(GpuFairness, CountsNoTryWhileWhatIsNotOursGrows) {
  Yard yard = two_on_one_gpu();
  static_cast<void>(yard.on(at(1), first_has({{0, gb(2)}, {1, gb(3)}}, gb(3))));
  const model::Decision ended = yard.on(at(2), ran_out_of_gpu(0));
  EXPECT_EQ(changes(ended).front(),
            "0#1 INTERRUPT OUT_OF_MEMORY: CUDA out of memory; processes outside this run used 3 GB "
            "more of GPU 0 meanwhile; retrying with 3 GB on its GPU");
}

TEST(GpuFairness, CountsATryWhereWhatIsNotOursWasThereBefore) {
  Yard with_stranger(PlanBuilder().tasks(1, gb(1)), kFair, kTwoGpus);
  static_cast<void>(with_stranger.on(at(0), first_has({}, gb(3))));
  model::Plan plan = PlanBuilder().tasks(1, gb(1)).on_gpus(1, gb(3), model::GpuIndex{0}).build();
  with_stranger.go(with_stranger.add(plan, at(1)), at(1));
  static_cast<void>(with_stranger.on(at(2), first_has({{1, gb(3)}}, gb(3))));
  EXPECT_EQ(changes(with_stranger.on(at(3), ran_out_of_gpu(1))).front(),
            "1#1 INTERRUPT OUT_OF_MEMORY: CUDA out of memory; retrying with 4.5 GB on its GPU");
}

TEST(GpuFairness, CountsATryWhenTheNeighbourThatHadTooMuchHasGone) {
  Yard yard = two_on_one_gpu();
  static_cast<void>(yard.on(at(1), first_has({{0, gb(2)}, {1, gb(4)}})));
  static_cast<void>(yard.ended(1, at(2)));
  static_cast<void>(yard.on(at(3), first_has({{0, gb(2)}})));
  EXPECT_EQ(commands(yard.on(at(4), ran_out_of_gpu(0, 1, gb(2)))),
            Texts{"start 0#2 with 1 GB, 4.5 GB on 0"});
}

TEST(GpuFairness, BelievesThatOthersAreToBlameFiveTimes) {
  model::Policy policy = kFair;
  policy.train_retries = 1;
  Yard yard = two_on_one_gpu(policy);
  for (std::uint32_t attempt = 1; attempt <= 6; ++attempt) {
    const int now = static_cast<int>(attempt) * 20;
    static_cast<void>(yard.on(at(now), first_has({{0, gb(2)}, {1, gb(4)}})));
    const model::Decision ended = yard.on(at(now + 1), ran_out_of_gpu(0, attempt));
    const bool is_last = attempt == 6;
    EXPECT_THAT(changes(ended).front(),
                HasSubstr(is_last ? "0#6 EXCEPTION FAILED OUT_OF_MEMORY" : "INTERRUPT"))
        << attempt;
    yard.go(yard.on(at(now + 2), first_has({{1, gb(4)}})), at(now + 2));
    yard.go(yard.on(at(now + 13), model::TimePassed{}), at(now + 13));
  }
}

TEST(GpuFairness, InterruptsWhoTookMoreThanWasReservedWhereANeighbourLacksItsOwn) {
  Yard yard = two_on_one_gpu();
  static_cast<void>(yard.on(at(1), first_has({{0, gb(1)}, {1, gb(7)}})));
  const model::Decision second = yard.on(at(2), first_has({{0, gb(1)}, {1, gb(7)}}));
  EXPECT_EQ(commands(second), Texts{"stop 1#1"});
  const model::Decision ended =
      yard.on(at(3), model::AttemptEnded{.key = {{1}, 1},
                                         .end = model::KilledBy{.signal = 15},
                                         .usage = {.gpu_memory_peak = gb(7)}});
  EXPECT_EQ(changes(ended).front(),
            "1#1 INTERRUPT OUT_OF_MEMORY: preempted: it used more of its GPU than was reserved, "
            "and other tasks there needed theirs; retrying with 7 GB on its GPU");
}

TEST(GpuFairness, InterruptsNobodyWhereAllHaveTheirs) {
  Yard yard = two_on_one_gpu();
  for (int second = 1; second < 5; ++second) {
    EXPECT_THAT(commands(yard.on(at(second), first_has({{0, gb(1)}, {1, gb(5)}}))), IsEmpty());
  }
}

TEST(GpuFairness, InterruptsNobodyForAMomentsExcess) {
  Yard yard = two_on_one_gpu();
  for (int second = 1; second < 6; second += 2) {
    EXPECT_THAT(commands(yard.on(at(second), first_has({{0, gb(1)}, {1, gb(7)}}))), IsEmpty());
    EXPECT_THAT(commands(yard.on(at(second + 1), first_has({{0, gb(1)}, {1, gb(3)}}))), IsEmpty());
  }
}

TEST(GpuFairness, InterruptsNobodyWhomThatWouldNotHelp) {
  Yard yard = two_on_one_gpu();
  for (int second = 1; second < 5; ++second) {
    // Without the second task the first could still not have its 3 GB.
    EXPECT_THAT(commands(yard.on(at(second), first_has({{0, gb(1)}, {1, Bytes{3'500'000'000}}},
                                                       Bytes{5'600'000'000}))),
                IsEmpty());
  }
}

TEST(GpuFairness, InterruptsNobodyThatMayNotBeInterrupted) {
  Yard yard(PlanBuilder().tasks(2, gb(1)).on_gpus(1, gb(3), model::GpuIndex{0}).keeps_running(),
            kFair, kTwoGpus);
  yard.go(yard.first, at(0));
  for (int second = 1; second < 5; ++second) {
    EXPECT_THAT(commands(yard.on(at(second), first_has({{0, gb(1)}, {1, gb(7)}}))), IsEmpty());
  }
}

TEST(GpuFairness, GivesTheLastTryTheLargestGpuForItself) {
  Yard yard(PlanBuilder().tasks(1, gb(1)).on_gpus(1, gb(3)), kFair, kSmallAndLarge);
  yard.go(yard.first, at(0));
  yard.go(yard.on(at(1), ran_out_of_gpu(0)), at(1));
  const model::Decision second = yard.on(at(2), ran_out_of_gpu(0, 2));
  EXPECT_EQ(changes(second),
            (Texts{"0#2 INTERRUPT OUT_OF_MEMORY: CUDA out of memory; retry 2 of 2, alone on the "
                   "largest GPU",
                   "0#3 AVAILABLE: retry 2 of 2, alone on GPU 1"}));
  EXPECT_EQ(commands(second), Texts{"start 0#3 with 1 GB, 1 whole"});
  yard.go(second, at(2));
  EXPECT_EQ(changes(yard.on(at(3), ran_out_of_gpu(0, 3))).front(),
            "0#3 EXCEPTION FAILED OUT_OF_MEMORY: out of memory, alone on GPU 1: CUDA out of "
            "memory (retry 2 of 2)");
}

TEST(GpuFairness, WaitsForTheLargestGpuThoughASmallOneIsFree) {
  Yard yard(PlanBuilder().tasks(1, gb(1)).on_gpus(1, gb(3)).tasks(1, gb(1)).on_gpus(
                1, gb(3), model::GpuIndex{1}),
            kFair, kSmallAndLarge);
  yard.go(yard.first, at(0));
  yard.go(yard.on(at(1), ran_out_of_gpu(0)), at(1));
  EXPECT_THAT(commands(yard.on(at(2), ran_out_of_gpu(0, 2))), IsEmpty());
  static_cast<void>(yard.ended(1, at(3)));
  EXPECT_EQ(commands(yard.on(at(4), first_has({}))), Texts{"start 0#3 with 1 GB, 1 whole"});
}

TEST(GpuFairness, TakesOneThatHadAGpuToTheLargestAtOnce) {
  Yard yard(PlanBuilder().tasks(1, gb(1)).on_gpus(1), kFair, kSmallAndLarge);
  EXPECT_EQ(commands(yard.go(yard.first, at(0))), Texts{"start 0#1 with 1 GB, 0 whole"});
  EXPECT_EQ(commands(yard.on(at(1), ran_out_of_gpu(0))), Texts{"start 0#2 with 1 GB, 1 whole"});
}

TEST(GpuFairness, GivesARetryWhatItsFrameworkPrintedThatItNeeds) {
  Yard yard(PlanBuilder().tasks(1, gb(1)).on_gpus(1, gb(3)), kFair, kTwoGpus);
  yard.go(yard.first, at(0));
  const std::string says =
      "CUDA out of memory. Tried to allocate 3.00 GB. GPU 0 has a total capacity of 8.00 GB of "
      "which 1.00 GB is free. Including non-PyTorch memory, this process has 3.00 GB memory in use";
  EXPECT_EQ(commands(yard.on(at(1), ran_out_of_gpu(0, 1, gb(3), says))),
            Texts{"start 0#2 with 1 GB, 6 GB on 1"});
}

TEST(GpuFairness, GivesNoRetryMoreThanThereIsWhateverIsPrinted) {
  for (const std::string says :
       {"Tried to allocate 900.00 TiB.",
        "Tried to allocate 99999999999999999999 TiB (GPU 0; 1.00 GiB total capacity; 1.00 GiB "
        "free)",
        "Tried to allocate 1.00 GiB (GPU 0; 8.00 GiB total capacity; 900.00 TiB already allocated)",
        "Tried to allocate 1.00 GiB. Including non-PyTorch memory, this process has inf GiB memory "
        "in use"}) {
    Yard yard(PlanBuilder().tasks(1, gb(1)).on_gpus(1, gb(3)), kFair, kTwoGpus);
    yard.go(yard.first, at(0));
    EXPECT_EQ(commands(yard.on(at(1), ran_out_of_gpu(0, 1, gb(3), "CUDA out of memory. " + says))),
              Texts{"start 0#2 with 1 GB, 8 GB on 1"})
        << says;
  }
}

TEST(GpuFairness, GivesARetryNoLessThanItHadWhateverIsPrinted) {
  for (const std::string number : {"-4.00", "nan", "-inf", "0.00", ""}) {
    Yard yard(PlanBuilder().tasks(1, gb(1)).on_gpus(1, gb(3)), kFair, kTwoGpus);
    yard.go(yard.first, at(0));
    const std::string says = "CUDA out of memory. Tried to allocate " + number +
                             " GiB (GPU 0; 8.00 GiB total capacity; " + number +
                             " GiB already allocated)";
    EXPECT_EQ(commands(yard.on(at(1), ran_out_of_gpu(0, 1, gb(3), says))),
              Texts{"start 0#2 with 1 GB, 4.5 GB on 0"})
        << number;
  }
}

TEST(GpuFairness, GivesNoRetryMoreThanThereIsWhateverTheDriverSaysThatItHad) {
  for (const Bytes had : {Bytes{-gb(5).count}, Bytes{}, gb(900'000), Bytes{1LL << 62}}) {
    Yard yard(PlanBuilder().tasks(1, gb(1)).on_gpus(1, gb(3)), kFair, kTwoGpus);
    yard.go(yard.first, at(0));
    EXPECT_EQ(
        commands(yard.on(at(1), ran_out_of_gpu(0, 1, had))),
        Texts{had > gb(8) ? "start 0#2 with 1 GB, 8 GB on 1" : "start 0#2 with 1 GB, 4.5 GB on 0"})
        << had.count;
  }
}

/// The reservation of the second task of a group for which 5 GB are written, once the first has
/// ended that took 6 GB instead of 4.
Texts second_after_one_that_took_more(const model::Policy& policy) {
  model::Capacity one_gpu = kTwoGpus;
  one_gpu.gpus.pop_back();
  Yard yard(PlanBuilder().tasks(1, gb(1)).on_gpus(1, gb(4)).tasks(1, gb(1)).on_gpus(1, gb(5)),
            policy, one_gpu);
  yard.go(yard.first, at(0));
  static_cast<void>(yard.on(at(1), model::AttemptEnded{.key = {{0}, 1},
                                                       .end = model::ExitedWith{0},
                                                       .usage = {.gpu_memory_peak = gb(6)}}));
  return commands(yard.on(at(2), model::GpusSampled{.gpus = {{}}, .uses = {}}));
}

TEST(GpuFairness, RaisesThoseThatWaitByWhatTheirGroupTookBeyondWhatWasWritten) {
  model::Policy policy = kFair;
  policy.auto_adjust = true;
  EXPECT_EQ(second_after_one_that_took_more(policy), Texts{"start 1#1 with 1 GB, 7.5 GB on 0"});
}

TEST(GpuFairness, RaisesNobodyWhereLearningIsSwitchedOff) {
  EXPECT_EQ(second_after_one_that_took_more(kFair), Texts{"start 1#1 with 1 GB, 5 GB on 0"});
}

}  // namespace
}  // namespace trainyard::schedule

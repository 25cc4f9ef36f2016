// The caps on GPU memory that tasks are given, and the results for those that would have had more.
#include <string>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
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

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Texts = std::vector<std::string>;

const model::Policy kTwoTries{
    .memory_remain = Bytes{0}, .gpu_memory_remain = Bytes{0}, .train_retries = 2};

/// One GPU of 8 GB, and memory and CPUs for all tasks that fit there.
const model::Capacity kSharedGpu{.memory = gb(100),
                                 .cpus = model::cpus(16),
                                 .gpus = {{.number = 0, .pci = "a", .memory = gb(8)}}};

/// "0: 5 GB" for each task that begins on a GPU; 0: no cap.
Texts caps(const model::Decision& decision) {
  Texts texts;
  for (const model::Command& command : decision.commands) {
    if (const auto* const start = std::get_if<model::StartAttempt>(&command)) {
      texts.push_back(fmt::format("{}: {}", start->key.task.value, to_text(start->gpu_memory_max)));
    } else if (const auto* const grant = std::get_if<model::GrantDevice>(&command)) {
      texts.push_back(fmt::format("{}: {}", grant->key.task.value, to_text(grant->gpu_memory_max)));
    }
  }
  return texts;
}

PlanBuilder each_of(int count, Bytes memory,
                    model::GpuMemoryLimit limit = model::GpuMemoryLimit::Soft) {
  PlanBuilder plan;
  plan.tasks(count, gb(1)).on_gpus(1, memory).gpu_memory_limit(limit);
  return plan;
}

TEST(GpuCaps, LeaveOneThatIsAloneAll) {
  EXPECT_EQ(caps(Yard(each_of(1, gb(3)), kTwoTries, kSharedGpu).first), Texts{"0: 0 B"});
  EXPECT_EQ(caps(Yard(each_of(1, Bytes{}), kTwoTries, kSharedGpu).first), Texts{"0: 0 B"});
}

TEST(GpuCaps, AreThePromiseAndWhatNobodyWasPromised) {
  EXPECT_EQ(caps(Yard(each_of(2, gb(3)), kTwoTries, kSharedGpu).first),
            (Texts{"0: 5 GB", "1: 5 GB"}));
  EXPECT_EQ(caps(Yard(each_of(2, gb(4)), kTwoTries, kSharedGpu).first),
            (Texts{"0: 4 GB", "1: 4 GB"}));
}

TEST(GpuCaps, LeaveOutWhatOthersHaveTakenMeanwhile) {
  Yard yard(each_of(1, gb(3)), kTwoTries, kSharedGpu);
  yard.go(yard.first, at(0));
  static_cast<void>(yard.on(
      at(1), model::GpusSampled{.gpus = {{.used = gb(4)}},
                                .uses = {{.key = {.task = {0}}, .gpu = {0}, .memory = gb(4)}}}));
  EXPECT_EQ(caps(yard.add(each_of(1, gb(3)).build(), at(2))), Texts{"1: 4 GB"});
}

TEST(GpuCaps, CountNobodyWhoseEndIsAboutToBeTold) {
  Yard one(each_of(1, gb(3)), kTwoTries, kSharedGpu);
  one.go(one.first, at(0));
  static_cast<void>(one.on(
      at(1), model::GpusSampled{.gpus = {{.used = gb(6)}},
                                .uses = {{.key = {.task = {0}}, .gpu = {0}, .memory = gb(6)}}}));
  EXPECT_EQ(caps(one.add(each_of(1, gb(3)).build(), at(2))), Texts{}) << "there is no room";
  EXPECT_EQ(caps(one.on(at(3), model::GpusSampled{.gpus = {{}}, .ends_follow = true})), Texts{});
  EXPECT_EQ(caps(one.on(at(3), model::AttemptEnded{.key = {{0}, 1}, .end = model::ExitedWith{3}})),
            Texts{"1: 0 B"})
      << "it is alone there";
}

TEST(GpuCaps, AreTheLeastOfSeveralGpus) {
  Yard yard(PlanBuilder().tasks(1, gb(1)).on_gpus(1, gb(4), model::GpuIndex{1}), kTwoTries,
            kTwoGpus);
  EXPECT_EQ(caps(yard.add(PlanBuilder().tasks(1, gb(1)).on_gpus(2, gb(3)).build())),
            Texts{"1: 4 GB"})
      << "the second GPU has 1 GB less to give";
}

TEST(GpuCaps, AreThePromiseWhereThatIsTheLimitEvenForOneThatIsAlone) {
  EXPECT_EQ(caps(Yard(each_of(1, gb(3), model::GpuMemoryLimit::Hard), kTwoTries, kSharedGpu).first),
            Texts{"0: 3 GB"});
}

TEST(GpuCaps, AreToldToNobodyWhoWantsNone) {
  EXPECT_EQ(caps(Yard(each_of(2, gb(3), model::GpuMemoryLimit::None), kTwoTries, kSharedGpu).first),
            (Texts{"0: 0 B", "1: 0 B"}));
}

TEST(GpuCaps, AreToldToOneThatLoadsFirstWithItsGpu) {
  Yard yard(PlanBuilder().tasks(2, gb(1)).on_gpus(1, gb(3)).two_phase(), kTwoTries, kSharedGpu);
  EXPECT_EQ(caps(yard.first), (Texts{"0: 0 B", "1: 0 B"})) << "it has none while it loads";
  EXPECT_EQ(caps(yard.loaded(0, at(1))), Texts{"0: 0 B"});
  EXPECT_EQ(caps(yard.loaded(1, at(2))), Texts{"1: 5 GB"});
}

/// Two of 3 GB each on one GPU of 8 GB, of which the second is capped by `how`.
Yard two_of_which_one_is_capped_by(const std::string& how, model::GpuMemoryLimit limit) {
  Yard yard(each_of(2, gb(3), limit), kTwoTries, kSharedGpu);
  static_cast<void>(
      yard.on(at(0), model::AttemptStarted{.key = {{0}, 1}, .pid = 1, .capped_by = {}}));
  static_cast<void>(
      yard.on(at(0), model::AttemptStarted{.key = {{1}, 1}, .pid = 2, .capped_by = how}));
  return yard;
}

model::GpusSampled both_have(Bytes first, Bytes second) {
  return {.gpus = {{.used = first + second}},
          .uses = {{.key = {.task = {0}}, .gpu = {0}, .memory = first},
                   {.key = {.task = {1}}, .gpu = {0}, .memory = second}}};
}

model::AttemptEnded second_ran_out(Bytes peak) {
  return {.key = {{1}, 1},
          .end = model::ExitedWith{1},
          .usage = {.gpu_memory_peak = peak},
          .out_of_memory = "CUDA out of memory",
          .of_gpu = true};
}

TEST(GpuCaps, MakeItOnesOwnFaultToRunOutOfThem) {
  Yard yard = two_of_which_one_is_capped_by("torch", model::GpuMemoryLimit::Soft);
  // Its neighbour has too much as well.
  static_cast<void>(yard.on(at(1), both_have(gb(5), gb(3))));
  EXPECT_EQ(changes(yard.on(at(2), second_ran_out(Bytes{4'600'000'000}))).front(),
            "1#1 INTERRUPT OUT_OF_MEMORY: CUDA out of memory; retry 1 of 1, alone on the largest "
            "GPU");
}

TEST(GpuCaps, ExcuseOneThatWasKeptFromLess) {
  Yard yard = two_of_which_one_is_capped_by("torch", model::GpuMemoryLimit::Soft);
  static_cast<void>(yard.on(at(1), both_have(gb(5), gb(3))));
  EXPECT_THAT(changes(yard.on(at(2), second_ran_out(gb(3)))).front(),
              HasSubstr("other tasks used 2 GB of GPU 0 more than was reserved for them"));
}

TEST(GpuCaps, ExcuseOneThatDoesNotUnderstandThem) {
  Yard yard = two_of_which_one_is_capped_by("", model::GpuMemoryLimit::Soft);
  static_cast<void>(yard.on(at(1), both_have(gb(5), gb(3))));
  EXPECT_THAT(changes(yard.on(at(2), second_ran_out(Bytes{4'600'000'000}))).front(),
              HasSubstr("other tasks used 2 GB"));
}

TEST(GpuCaps, EndForGoodThoseThatRunOutOfAHardOne) {
  Yard yard = two_of_which_one_is_capped_by("torch", model::GpuMemoryLimit::Hard);
  EXPECT_EQ(changes(yard.on(at(2), second_ran_out(Bytes{2'900'000'000}))).front(),
            "1#1 EXCEPTION FAILED OUT_OF_MEMORY: CUDA out of memory; its limit is 3 GB of its GPU "
            "(gpu-memory-limit: hard)");
}

TEST(GpuCaps, EndThoseThatTakeMoreThanAHardOne) {
  Yard yard = two_of_which_one_is_capped_by("", model::GpuMemoryLimit::Hard);
  EXPECT_THAT(commands(yard.on(at(1), both_have(gb(3), gb(3)))), IsEmpty());
  EXPECT_EQ(commands(yard.on(at(2), both_have(gb(3), Bytes{3'200'000'000}))), Texts{"stop 1#1"});
  EXPECT_EQ(changes(yard.on(at(3), model::AttemptEnded{.key = {{1}, 1},
                                                       .end = model::KilledBy{.signal = 15},
                                                       .usage = {}}))
                .front(),
            "1#1 EXCEPTION FAILED OUT_OF_MEMORY: used more of its GPU than its limit of 3 GB "
            "(gpu-memory-limit: hard)");
}

/// The reservation of a third task whose neighbours wrote 3 GB and of which one ended with `peak`.
Texts third_after_one_that_took(Bytes peak, bool capped) {
  model::Policy policy = kTwoTries;
  policy.auto_adjust = true;
  model::Capacity machine = kSharedGpu;
  machine.cpus = model::cpus(2);
  PlanBuilder plan;
  plan.tasks(3, gb(1), model::cpus(1)).on_gpus(1, gb(3));
  Yard yard(plan, policy, machine);
  static_cast<void>(yard.on(at(0), model::AttemptStarted{.key = {{0}, 1}, .capped_by = {}}));
  static_cast<void>(yard.on(at(0), model::AttemptStarted{.key = {{1}, 1}, .capped_by = {}}));
  static_cast<void>(yard.on(
      at(1), model::AttemptEnded{.key = {{1}, 1},
                                 .end = model::ExitedWith{0},
                                 .usage = {.gpu_memory_peak = peak, .gpu_capped = capped}}));
  return commands(yard.on(at(2), model::GpusSampled{.gpus = {{}}, .uses = {}}));
}

TEST(GpuCaps, AreNotLearnedAsWhatIsNeeded) {
  const Bytes peak{4'900'000'000};
  EXPECT_EQ(third_after_one_that_took(peak, true), Texts{"start 2#1 with 1 GB, 3 GB on 0"});
  EXPECT_EQ(third_after_one_that_took(peak, false), Texts{"start 2#1 with 1 GB, 4.9 GB on 0"});
}

/// A third task of 2 GB, for which there are CPUs when one of two on a GPU of 8 GB has ended: both
/// may take 6 GB, and only the second gets this cap in variables that it understands.
Yard third_waits_for_two(const model::Capacity& gpus = kSharedGpu) {
  model::Policy policy = kTwoTries;
  policy.auto_adjust = true;
  policy.train_retries = 1;
  model::Capacity machine = gpus;
  machine.cpus = model::cpus(2);
  Yard yard(PlanBuilder().tasks(3, gb(1), model::cpus(1)).on_gpus(1, gb(2)), policy, machine);
  EXPECT_EQ(caps(yard.first), (Texts{"0: 6 GB", "1: 6 GB"}));
  static_cast<void>(yard.on(at(0), model::AttemptStarted{.key = {{0}, 1}, .capped_by = {}}));
  static_cast<void>(yard.on(at(0), model::AttemptStarted{.key = {{1}, 1}, .capped_by = "torch"}));
  return yard;
}

const model::AttemptEnded kFirstEnded{
    .key = {{0}, 1}, .end = model::ExitedWith{0}, .usage = {.gpu_memory_peak = gb(1)}};

/// The reservation of the third when the first has ended and the second has `memory`.
Texts third_beside_one_that_has(Bytes memory) {
  Yard yard = third_waits_for_two();
  static_cast<void>(yard.on(at(1), both_have(gb(1), memory)));
  static_cast<void>(yard.on(at(2), kFirstEnded));
  const model::GpusSampled alone{.gpus = {{.used = memory}},
                                 .uses = {{.key = {{1}, 1}, .gpu = {0}, .memory = memory}}};
  return commands(yard.on(at(3), alone));
}

TEST(GpuCaps, SayOfOneThatRunsAtItsCapNothingToOthers) {
  EXPECT_EQ(third_beside_one_that_has(Bytes{5'500'000'000}),
            Texts{"start 2#1 with 1 GB, 2 GB on 0"});
  EXPECT_EQ(third_beside_one_that_has(gb(4)), Texts{"start 2#1 with 1 GB, 4 GB on 0"})
      << "it might have had more";
}

TEST(GpuCaps, SayOfOneThatDiedAtItsCapNothingToOthersNotEvenWhatItHadBefore) {
  // On another GPU, where the third may begin at once.
  model::Capacity two = kSharedGpu;
  two.gpus.push_back({.number = 1, .pci = "b", .memory = gb(8)});
  Yard yard = third_waits_for_two(two);
  model::GpusSampled seen = both_have(gb(1), gb(4));
  seen.gpus.emplace_back();
  static_cast<void>(yard.on(at(1), seen));
  EXPECT_THAT(commands(yard.on(at(2), second_ran_out(Bytes{5'900'000'000}))),
              Contains(HasSubstr("start 2#1 with 1 GB, 2 GB on")));
}

}  // namespace
}  // namespace trainyard::schedule

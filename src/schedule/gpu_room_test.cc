#include "schedule/gpu_room.h"

#include <gtest/gtest.h>

#include "model/event.h"
#include "schedule/test_yard.h"

namespace trainyard::schedule {
namespace {

constexpr int kWhole = 1000;

TEST(Sharers, AdmitAnyNumberOfThoseOfWhichNothingIsWritten) {
  Sharers sharers;
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(sharers.admit({}, kWhole));
    sharers.add({});
  }
  EXPECT_EQ(sharers.tasks(), 100);
  EXPECT_EQ(sharers.tasks_max(), 0);
}

TEST(Sharers, AdmitNoMoreThanTheStrictestOfThemLetsBeThere) {
  Sharers sharers;
  sharers.add({.max_per_gpu = 3});
  EXPECT_TRUE(sharers.admit({}, kWhole));
  EXPECT_FALSE(sharers.admit({.max_per_gpu = 1}, kWhole)) << "the one that comes is one of them";
  sharers.add({.max_per_gpu = 2});
  EXPECT_EQ(sharers.tasks_max(), 2);
  EXPECT_FALSE(sharers.admit({}, kWhole));
  sharers.remove({.max_per_gpu = 2});
  EXPECT_EQ(sharers.tasks_max(), 3);
  EXPECT_TRUE(sharers.admit({.max_per_gpu = 2}, kWhole));
}

TEST(Sharers, AdmitNoMoreUseThanTheLimitAndOneThatIsAlone) {
  Sharers sharers;
  EXPECT_TRUE(sharers.admit({.utilization = 1000}, 800)) << "it would never run";
  sharers.add({.utilization = 500});
  EXPECT_TRUE(sharers.admit({.utilization = 300}, 800));
  EXPECT_FALSE(sharers.admit({.utilization = 301}, 800));
  EXPECT_TRUE(sharers.admit({}, 800)) << "of what nobody said nothing is known";
  sharers.remove({.utilization = 500});
  EXPECT_EQ(sharers.utilization(), 0);
  EXPECT_EQ(sharers.tasks(), 0);
}

model::Gpu card(int number, Bytes memory, std::int64_t speed = 100) {
  return {.number = number,
          .uuid = "GPU-" + std::to_string(number),
          .name = "made up",
          .pci = "00000000:0" + std::to_string(number) + ":00.0",
          .memory = memory,
          .speed = speed};
}

/// Three cards, of which the second is the largest, the third the fastest.
model::Capacity three() {
  return {.gpus = {card(0, gb(10)), card(1, gb(40)), card(2, gb(20), 900)}};
}

model::Policy all_of_it(model::GpuStrategy strategy, bool reverse = false) {
  return {.gpu_strategy = strategy,
          .gpu_reverse = reverse,
          .gpu_memory_remain = Bytes{0},
          .gpu_memory_least = gb(2)};
}

std::vector<std::uint32_t> chosen(const GpuChooser& chooser, const std::vector<GpuRoom>& room,
                                  const model::Request& request) {
  std::vector<std::uint32_t> numbers;
  for (const model::GpuIndex gpu : chooser.choose(room, request).value_or(GpuSet{})) {
    numbers.push_back(gpu.value);
  }
  return numbers;
}

const std::vector<GpuRoom> kRoom{{.free = gb(9)}, {.free = gb(6)}, {.free = gb(7)}};
const model::Request kShared{.gpus = 1, .gpu_memory = gb(5)};
using Numbers = std::vector<std::uint32_t>;

TEST(GpuRoom, IsGivenOnIdleGpusFirstUpToTheirNumber) {
  const GpuChooser chooser(all_of_it(model::GpuStrategy::IdleFirst), three());
  std::vector<GpuRoom> room = kRoom;
  room[1].sharers.add({});
  const auto of_two = [&](std::size_t idle_max) {
    return chooser.choose(room, {.gpus = 2, .gpu_memory = gb(5)}, idle_max);
  };
  EXPECT_EQ(of_two(0), (GpuSet{{1}, {2}})) << "those with the least left";
  EXPECT_EQ(of_two(1), (GpuSet{{1}, {2}})) << "the idle one with less left, and the busy one";
  EXPECT_EQ(of_two(2), (GpuSet{{0}, {2}}));
  room[2].of_others = gb(1);
  EXPECT_EQ(of_two(2), (GpuSet{{0}, {1}})) << "one that processes without a task use is not idle";
  EXPECT_EQ(chooser.choose(room, {.gpus = 1, .gpu_memory = gb(8)}, 1), (GpuSet{{0}}));
  EXPECT_EQ(chooser.choose(room, {.gpus = 1, .gpu_memory = gb(10)}, 1), std::nullopt);
}

TEST(GpuRoom, IsNotGivenOnTheGpusThatARequestAvoids) {
  const model::Policy policy = all_of_it(model::GpuStrategy::Pci);
  model::Request request = kShared;
  request.avoids = {{.machine = {1}, .gpu = {0}}, {.machine = {1}, .gpu = {2}}};
  EXPECT_EQ(chosen(GpuChooser(policy, three(), {1}), kRoom, request), Numbers{1});
  EXPECT_EQ(chosen(GpuChooser(policy, three(), {2}), kRoom, request), Numbers{0})
      << "those of another machine have the same numbers";
  request.avoids.push_back({.machine = {1}, .gpu = {1}});
  EXPECT_EQ(chosen(GpuChooser(policy, three(), {1}), kRoom, request), Numbers{});
}

TEST(GpuRoom, IsGivenInTheOrderOfTheStrategy) {
  const model::Capacity capacity = three();
  const auto by = [&](model::GpuStrategy strategy, bool reverse) {
    return chosen(GpuChooser(all_of_it(strategy, reverse), capacity), kRoom, kShared);
  };
  EXPECT_EQ(by(model::GpuStrategy::Pci, false), Numbers{0});
  EXPECT_EQ(by(model::GpuStrategy::Pci, true), Numbers{2});
  EXPECT_EQ(by(model::GpuStrategy::TotalMemory, false), Numbers{1});
  EXPECT_EQ(by(model::GpuStrategy::TotalMemory, true), Numbers{0});
  EXPECT_EQ(by(model::GpuStrategy::RemainingMemory, false), Numbers{0});
  EXPECT_EQ(by(model::GpuStrategy::RemainingMemory, true), Numbers{1});
  EXPECT_EQ(by(model::GpuStrategy::Performance, false), Numbers{2});
  EXPECT_EQ(by(model::GpuStrategy::BestFit, false), Numbers{1});
  EXPECT_EQ(by(model::GpuStrategy::BestFit, true), Numbers{0});
}

TEST(GpuRoom, GoesToSeveralGpusOrToNone) {
  const GpuChooser chooser(all_of_it(model::GpuStrategy::BestFit), three());
  EXPECT_EQ(chosen(chooser, kRoom, {.gpus = 2, .gpu_memory = gb(5)}), (Numbers{1, 2}));
  EXPECT_EQ(chosen(chooser, kRoom, {.gpus = 2, .gpu_memory = gb(7)}), (Numbers{0, 2}));
  EXPECT_EQ(chooser.choose(kRoom, {.gpus = 3, .gpu_memory = gb(7)}), std::nullopt);
  EXPECT_EQ(chooser.choose(kRoom, {.memory = gb(1)}), GpuSet{});
}

TEST(GpuRoom, IsGivenWholeWhereNobodyHoldsAPartOfIt) {
  const GpuChooser chooser(all_of_it(model::GpuStrategy::BestFit), three());
  const model::Request whole{.gpus = 1};
  std::vector<GpuRoom> room = kRoom;
  room[1].holders = 1;
  EXPECT_EQ(chosen(chooser, room, whole), Numbers{2});
  take(room, whole, {model::GpuIndex{2}});
  EXPECT_EQ(chosen(chooser, room, kShared), Numbers{1});
  EXPECT_EQ(chosen(chooser, room, whole), Numbers{0});
  // Others have nearly all of it: the rest is of no use.
  room[0].free = gb(1);
  EXPECT_EQ(chooser.choose(room, whole), std::nullopt);
}

TEST(GpuRoom, IsGivenWholeWhereOthersUseLeast) {
  const GpuChooser chooser(all_of_it(model::GpuStrategy::BestFit), three());
  std::vector<GpuRoom> room = kRoom;
  room[1].of_others = gb(2);
  room[0].of_others = mb(300);
  EXPECT_EQ(chosen(chooser, room, {.gpus = 1}), Numbers{2});
  EXPECT_EQ(chosen(chooser, room, {.gpus = 2}), (Numbers{0, 2}));
  // Memory that a driver keeps for itself is the same as nothing; and a part goes where it fits
  // best.
  room[0].of_others = mb(100);
  room[2].of_others = mb(200);
  EXPECT_EQ(chosen(chooser, room, {.gpus = 1}), Numbers{2});
  EXPECT_EQ(chosen(chooser, room, kShared), Numbers{1});
  // The configured order goes over the default one.
  room[2].of_others = gb(2);
  const GpuChooser by_place(all_of_it(model::GpuStrategy::Pci, true), three());
  EXPECT_EQ(chosen(by_place, room, {.gpus = 1}), Numbers{2});
}

TEST(GpuRoom, OfOneWhereAnotherUserComputesIsNotGiven) {
  const GpuChooser chooser(all_of_it(model::GpuStrategy::BestFit), three());
  std::vector<GpuRoom> room = kRoom;
  room[1].avoided = true;
  EXPECT_EQ(chosen(chooser, room, kShared), Numbers{2});
  EXPECT_EQ(chosen(chooser, room, {.gpus = 1}), Numbers{2});
  EXPECT_EQ(chooser.choose(room, {.gpus = 3}), std::nullopt);
  EXPECT_EQ(chooser.choose(room, {.gpus = 1, .gpu_memory = gb(5), .gpu = model::GpuIndex{1}}),
            std::nullopt);
}

TEST(GpuRoom, IsTheOneThatIsWishedForOrNone) {
  const GpuChooser chooser(all_of_it(model::GpuStrategy::BestFit), three());
  model::Request wish = kShared;
  wish.gpu = model::GpuIndex{2};
  EXPECT_EQ(chosen(chooser, kRoom, wish), Numbers{2});
  wish.gpu_memory = gb(8);
  EXPECT_EQ(chooser.choose(kRoom, wish), std::nullopt);
}

TEST(GpuRoom, OfASliceGoesWithNoOther) {
  model::Capacity capacity = three();
  capacity.gpus[1].slice = 0;
  const GpuChooser chooser(all_of_it(model::GpuStrategy::BestFit), capacity);
  EXPECT_EQ(chosen(chooser, kRoom, kShared), Numbers{1});
  EXPECT_EQ(chosen(chooser, kRoom, {.gpus = 2, .gpu_memory = gb(5)}), (Numbers{0, 2}));
  EXPECT_EQ(chooser.most_memory({.gpus = 2}), gb(10));
}

TEST(GpuRoom, OfOneThatDoesNotAnswerIsNotGiven) {
  const GpuChooser chooser(all_of_it(model::GpuStrategy::Pci), three());
  std::vector<GpuRoom> room = kRoom;
  room[0].present = false;
  EXPECT_EQ(chosen(chooser, room, kShared), Numbers{1});
  EXPECT_FALSE(chooser.empty(room)[0].present);
}

TEST(GpuRoom, KeepsFreeWhatTheStricterLimitSays) {
  const model::Gpu small = card(0, gb(8));
  const model::Gpu large = card(1, gb(80));
  EXPECT_EQ(memory_kept_free({}, small), mb(800));
  EXPECT_EQ(memory_kept_free({}, large), gb(4));
  EXPECT_EQ(memory_kept_free({.gpu_memory_utilization_max = 0.5}, large), gb(40));
  EXPECT_EQ(
      memory_kept_free({.gpu_memory_utilization_max = 0.5, .gpu_memory_remain = gb(50)}, large),
      gb(50));
  EXPECT_EQ(memory_kept_free({.gpu_memory_remain = Bytes{0}}, large), Bytes{0});
}

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

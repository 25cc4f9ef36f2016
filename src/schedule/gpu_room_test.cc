#include "schedule/gpu_room.h"

#include <cstdint>

#include <gtest/gtest.h>

namespace trainyard::schedule {
namespace {

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

}  // namespace
}  // namespace trainyard::schedule

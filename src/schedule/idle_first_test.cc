// The GPUs that tasks get while those without tasks come first, one rule a test.
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/time.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/promises.h"
#include "model/resources.h"
#include "schedule/test_yard.h"

namespace trainyard::schedule {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::uint32_t kMona = 1001;

const model::Policy kIdleFirst{.memory_remain = Bytes{0},
                               .gpu_strategy = model::GpuStrategy::IdleFirst,
                               .gpu_memory_remain = Bytes{0},
                               .train_retries = 3};

/// Four GPUs of 24 GB.
model::Capacity four_gpus() {
  model::Capacity machine{.memory = gb(256), .cpus = model::cpus(256)};
  for (int i = 0; i < 4; ++i) {
    const std::string name(1, static_cast<char>('a' + i));
    machine.gpus.push_back({.number = i, .uuid = "GPU-" + name, .pci = name, .memory = gb(24)});
  }
  return machine;
}

Yard idle_first_yard(const PlanBuilder& plan, const model::Policy& policy = kIdleFirst) {
  return Yard(plan, policy, four_gpus());
}

model::GpusSampled reading_of_four() { return {.gpus = std::vector<model::GpuReading>(4)}; }

/// By GPU, how many tasks a decision starts there.
std::vector<int> started_on(const model::Decision& decision) {
  std::vector<int> tasks(4);
  for (const model::Command& command : decision.commands) {
    const auto* const start = std::get_if<model::StartAttempt>(&command);
    if (start == nullptr) continue;
    for (const model::GpuIndex gpu : start->site.gpus) ++tasks.at(gpu.value);
  }
  return tasks;
}

model::Neighbour run_of(std::uint32_t user, model::Promises its) {
  its.ticket = "1";
  return {.user = user, .is_ours = user == 0, .its = std::move(its)};
}

/// 6 GB of the first GPU.
model::Promises with_a_task_there() {
  return {.held = {.tasks = 1,
                   .cards = {{.uuid = "GPU-a", .memory = gb(6), .unused = gb(6), .tasks = 1}}}};
}

/// Three tasks of 6 GB come to a yard on which nothing of its own runs.
model::Decision three_come(Yard& yard) {
  return yard.add(PlanBuilder().tasks(3, gb(1)).on_gpus(1, gb(6)).build(), at(1));
}

TEST(IdleFirst, SpreadsTasksOverGpusWithoutTasks) {
  EXPECT_THAT(commands(idle_first_yard(PlanBuilder().tasks(4, gb(1)).on_gpus(1, gb(6))).first),
              ElementsAre("start 0#1 with 1 GB, 6 GB on 0", "start 1#1 with 1 GB, 6 GB on 1",
                          "start 2#1 with 1 GB, 6 GB on 2", "start 3#1 with 1 GB, 6 GB on 3"));
}

TEST(IdleFirst, PacksWhatComesWhenEachGpuHasATask) {
  Yard yard = idle_first_yard(PlanBuilder().tasks(4, gb(1)).on_gpus(1, gb(6)));
  const model::Decision more =
      yard.add(PlanBuilder().tasks(4, gb(1)).on_gpus(1, gb(6)).build(), at(1));
  EXPECT_THAT(started_on(more), ElementsAre(3, 1, 0, 0)) << "large gaps stay whole";
}

TEST(IdleFirst, FillsAllGpusWithSmallTasks) {
  Yard yard = idle_first_yard(PlanBuilder().tasks(128, gb(1)).on_gpus(1, mb(750)));
  EXPECT_THAT(started_on(yard.first), ElementsAre(32, 32, 32, 32));
}

TEST(IdleFirst, IsOneOfTheStrategies) {
  model::Policy policy = kIdleFirst;
  policy.gpu_strategy = model::GpuStrategy::BestFit;
  EXPECT_THAT(
      started_on(idle_first_yard(PlanBuilder().tasks(4, gb(1)).on_gpus(1, gb(6)), policy).first),
      ElementsAre(4, 0, 0, 0));
}

TEST(IdleFirst, TakesAGpuWhoseTaskHasEndedThoughItsMemoryIsStillShown) {
  Yard yard = idle_first_yard(PlanBuilder().tasks(5, gb(1), model::cpus(64)).on_gpus(1, gb(6)));
  EXPECT_THAT(started_on(yard.first), ElementsAre(1, 1, 1, 1)) << "the CPUs are enough for four";
  yard.go(yard.first, at(0));
  EXPECT_THAT(commands(yard.ended(2, at(1))), ElementsAre("start 4#1 with 1 GB, 6 GB on 2"));
}

TEST(IdleFirst, DoesNotTakeAGpuForIdleThatProcessesOfOnesOwnUse) {
  Yard yard = idle_first_yard(PlanBuilder());
  model::GpusSampled reading = reading_of_four();
  reading.gpus[0].used = gb(1);
  reading.gpus[1].used = mb(100);
  static_cast<void>(yard.on(at(1), reading));
  EXPECT_THAT(started_on(three_come(yard)), ElementsAre(0, 1, 1, 1))
      << "a driver's own 100 MB do not make a GPU busy";
}

TEST(IdleFirst, SpreadsNoFurtherThanItsShareWhileAnotherUserHasARunHere) {
  Yard yard = idle_first_yard(PlanBuilder());
  static_cast<void>(
      yard.on(at(1), model::NeighboursSeen{.neighbours = {run_of(kMona, with_a_task_there())}}));
  EXPECT_THAT(started_on(three_come(yard)), ElementsAre(1, 1, 1, 0))
      << "two GPUs are its share; the third task gets the first of three with as much left";
}

TEST(IdleFirst, SpreadsNoFurtherThanItsShareWhileAnotherUsersRunWaitsForAGpu) {
  Yard yard = idle_first_yard(PlanBuilder());
  static_cast<void>(yard.on(
      at(1),
      model::NeighboursSeen{
          .neighbours = {run_of(kMona, {.want = model::Want{.gpus = 1, .gpu_memory = gb(20)}})}}));
  EXPECT_THAT(started_on(three_come(yard)), ElementsAre(2, 1, 0, 0));
}

TEST(IdleFirst, SpreadsNoFurtherThanItsShareWhileAnotherUserHasAProcessHere) {
  Yard yard = idle_first_yard(PlanBuilder());
  model::GpusSampled reading = reading_of_four();
  reading.gpus[3] = {.used = gb(2), .other_user = kMona};
  static_cast<void>(yard.on(at(1), reading));
  EXPECT_THAT(started_on(three_come(yard)), ElementsAre(2, 1, 0, 0));
}

TEST(IdleFirst, LeavesAnotherUserAShareAlsoWhereNobodyIsAvoided) {
  model::Policy policy = kIdleFirst;
  policy.gpu_avoids_others = false;
  Yard yard = idle_first_yard(PlanBuilder(), policy);
  model::GpusSampled reading = reading_of_four();
  reading.gpus[3] = {.used = gb(2), .other_user = kMona};
  static_cast<void>(yard.on(at(1), reading));
  EXPECT_THAT(started_on(three_come(yard)), ElementsAre(2, 1, 0, 0));
}

TEST(IdleFirst, TakesNoNoticeOfAnotherUserWithoutGpus) {
  Yard yard = idle_first_yard(PlanBuilder());
  static_cast<void>(yard.on(
      at(1), model::NeighboursSeen{
                 .neighbours = {run_of(kMona, {.held = {.cpus = model::cpus(4), .tasks = 1}})}}));
  EXPECT_THAT(started_on(three_come(yard)), ElementsAre(1, 1, 1, 0));
}

TEST(IdleFirst, UsesWhatIsFreeBeyondItsShareOnceItsOwnGpusAreFull) {
  Yard yard = idle_first_yard(PlanBuilder());
  model::GpusSampled reading = reading_of_four();
  reading.gpus[3] = {.used = gb(2), .other_user = kMona};
  static_cast<void>(yard.on(at(1), reading));
  const model::Decision all =
      yard.add(PlanBuilder().tasks(12, gb(1)).on_gpus(1, gb(6)).build(), at(1));
  EXPECT_THAT(started_on(all), ElementsAre(4, 4, 4, 0)) << "the other user's GPU is left alone";
}

TEST(IdleFirst, CountsWhatOtherRunsOfTheUserHaveAsItsOwn) {
  Yard yard = idle_first_yard(PlanBuilder());
  const model::Promises waits{.want = model::Want{.gpus = 1, .gpu_memory = gb(20)}};
  static_cast<void>(yard.on(
      at(1),
      model::NeighboursSeen{.neighbours = {run_of(0, with_a_task_there()), run_of(kMona, waits)}}));
  EXPECT_THAT(started_on(three_come(yard)), ElementsAre(2, 1, 0, 0))
      << "its other run is on one of its two GPUs";
}

TEST(IdleFirst, TakesNoGpuForIdleOnWhichAnotherRunOfTheUserHasATask) {
  Yard yard = idle_first_yard(PlanBuilder());
  static_cast<void>(
      yard.on(at(1), model::NeighboursSeen{.neighbours = {run_of(0, with_a_task_there())}}));
  EXPECT_THAT(started_on(three_come(yard)), ElementsAre(0, 1, 1, 1));
}

TEST(IdleFirst, PacksWhileATaskOfTheRunWaitsForAWholeGpu) {
  PlanBuilder plan;
  plan.tasks(4, gb(1)).on_gpus(1, gb(6)).tasks(3, gb(1)).on_gpus(1);
  EXPECT_THAT(commands(idle_first_yard(plan).first),
              ElementsAre("start 0#1 with 1 GB, 6 GB on 0", "start 1#1 with 1 GB, 6 GB on 0",
                          "start 2#1 with 1 GB, 6 GB on 0", "start 3#1 with 1 GB, 6 GB on 0",
                          "start 4#1 with 1 GB, 1 whole", "start 5#1 with 1 GB, 2 whole",
                          "start 6#1 with 1 GB, 3 whole"));
}

TEST(IdleFirst, LetsAWholeGpuComeFreeForATaskThatComesLate) {
  Yard yard = idle_first_yard(PlanBuilder().tasks(8, gb(1), model::cpus(64)).on_gpus(1, gb(6)));
  EXPECT_THAT(started_on(yard.first), ElementsAre(1, 1, 1, 1));
  yard.go(yard.first, at(0));
  EXPECT_THAT(commands(yard.add(PlanBuilder().tasks(1, gb(1)).on_gpus(1).build(), at(1))),
              IsEmpty());
  EXPECT_THAT(commands(yard.go(yard.ended(3, at(2)), at(2))),
              ElementsAre("start 4#1 with 1 GB, 6 GB on 0"))
      << "not on the GPU on which nothing runs any more";
  EXPECT_THAT(commands(yard.on(at(3), reading_of_four())),
              ElementsAre("start 8#1 with 1 GB, 3 whole"));
}

TEST(IdleFirst, TakesNoNoticeOfWhatWaitsForItsOwnGroup) {
  PlanBuilder plan;
  plan.group({.name = "large", .parallel_max = 1}).tasks(2, gb(1)).on_gpus(1);
  plan.group({.name = "small"}).tasks(3, gb(1)).on_gpus(1, gb(6));
  EXPECT_THAT(started_on(idle_first_yard(plan).first), ElementsAre(1, 1, 1, 1));
}

TEST(IdleFirst, PacksWhileAnotherRunWaitsForAWholeGpu) {
  Yard yard = idle_first_yard(PlanBuilder());
  static_cast<void>(yard.on(
      at(1), model::NeighboursSeen{.neighbours = {run_of(0, {.want = model::Want{.gpus = 1}})}}));
  EXPECT_THAT(started_on(three_come(yard)), ElementsAre(3, 0, 0, 0));
}

TEST(IdleFirst, GivesATaskOfSeveralGpusAsManyIdleOnesAsItsShareHasLeft) {
  Yard yard = idle_first_yard(PlanBuilder().tasks(1, gb(1)).on_gpus(1, gb(6)));
  const model::Promises waits{.want = model::Want{.gpus = 1, .gpu_memory = gb(20)}};
  static_cast<void>(yard.on(at(1), model::NeighboursSeen{.neighbours = {run_of(kMona, waits)}}));
  EXPECT_THAT(started_on(yard.add(PlanBuilder().tasks(1, gb(1)).on_gpus(2, gb(6)).build(), at(1))),
              ElementsAre(1, 1, 0, 0));
}

}  // namespace
}  // namespace trainyard::schedule

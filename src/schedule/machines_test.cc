// The behaviour of the scheduler with more than one machine.
#include <algorithm>
#include <cstdint>
#include <iterator>
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
#include "model/resources.h"
#include "model/waiting.h"
#include "schedule/test_yard.h"

namespace trainyard::schedule {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr model::MachineIndex kLab0{0};
constexpr model::MachineIndex kLab1{1};

model::Capacity machine_with(const std::vector<Bytes>& memories) {
  model::Capacity machine = kMachine;
  for (const Bytes memory : memories) {
    const int number = static_cast<int>(machine.gpus.size());
    machine.gpus.push_back({.number = number, .memory = memory});
  }
  return machine;
}

/// A yard on one machine, which another one joins.
class Machines : public ::testing::Test {
 protected:
  static model::Decision join(Yard& yard, model::MachineIndex machine, Instant when,
                              const model::Capacity& capacity = kMachine) {
    static_cast<void>(
        yard.on(when, model::MachineJoined{.machine = machine,
                                           .name = "lab" + std::to_string(machine.value),
                                           .capacity = capacity}));
    return look(yard, machine, when, capacity);
  }

  /// The decisions after both readings.
  static model::Decision look(Yard& yard, model::MachineIndex machine, Instant when,
                              const model::Capacity& capacity = kMachine) {
    model::Decision all;
    if (!capacity.gpus.empty()) {
      all = yard.on(when,
                    model::GpusSampled{.gpus = std::vector<model::GpuReading>(capacity.gpus.size()),
                                       .uses = {},
                                       .machine = machine});
    }
    const model::Decision of_host =
        yard.on(when, model::Sampled{.memory_available = capacity.memory, .machine = machine});
    std::ranges::copy(of_host.changes, std::back_inserter(all.changes));
    std::ranges::copy(of_host.commands, std::back_inserter(all.commands));
    return all;
  }
};

TEST_F(Machines, StartTasksInTheOrderInWhichTheyJoined) {
  Yard yard(PlanBuilder().tasks(5, gb(6)));
  EXPECT_THAT(commands(yard.first), ElementsAre("start 0#1 with 6 GB"));
  EXPECT_THAT(commands(join(yard, kLab1, at(1))), ElementsAre("start 1#1 with 6 GB on 1"));
  EXPECT_THAT(commands(join(yard, {2}, at(2))), ElementsAre("start 2#1 with 6 GB on 2"));
  EXPECT_THAT(commands(yard.ran(1, at(3))), ElementsAre("start 3#1 with 6 GB on 1"));
  EXPECT_THAT(commands(yard.ran(0, at(4))), ElementsAre("start 4#1 with 6 GB"));
}

TEST_F(Machines, AreGivenNothingBeforeTheyWereLookedAt) {
  Yard yard(PlanBuilder().tasks(2, gb(6)));
  const model::Decision joined =
      yard.on(at(1), model::MachineJoined{.machine = kLab1, .name = "lab1", .capacity = kMachine});
  EXPECT_THAT(commands(joined), IsEmpty());
  EXPECT_THAT(commands(yard.on(at(2), model::TimePassed{})), IsEmpty());
  EXPECT_THAT(commands(look(yard, kLab1, at(3))), ElementsAre("start 1#1 with 6 GB on 1"));
}

TEST_F(Machines, ThatAreGoneAreGivenNothingUntilTheyJoinAgain) {
  Yard yard(PlanBuilder().tasks(3, gb(6)));
  EXPECT_THAT(commands(join(yard, kLab1, at(1))), ElementsAre("start 1#1 with 6 GB on 1"));
  static_cast<void>(yard.started(1, at(1)));
  static_cast<void>(yard.on(at(60), model::KeeperSilent{.silent = true, .machine = kLab1}));
  EXPECT_THAT(
      commands(yard.ended(1, at(60), model::Vanished{"nothing was heard of lab1 for 60 s"})),
      IsEmpty())
      << "it is tried again, and the first machine is full";
  static_cast<void>(yard.on(at(60), model::MachineGone{.machine = kLab1, .why = "silent"}));
  EXPECT_THAT(commands(look(yard, kLab1, at(61))), IsEmpty());
  EXPECT_THAT(commands(join(yard, kLab1, at(90), {.memory = gb(20), .cpus = model::cpus(8)})),
              ElementsAre("start 1#2 with 6 GB on 1", "start 2#1 with 6 GB on 1"))
      << "it is larger than it was";
}

TEST_F(Machines, WhoseKeeperIsSilentAreGivenNothing) {
  Yard yard(PlanBuilder().tasks(2, gb(6)));
  static_cast<void>(
      yard.on(at(1), model::MachineJoined{.machine = kLab1, .name = "lab1", .capacity = kMachine}));
  static_cast<void>(yard.on(at(1), model::KeeperSilent{.silent = true, .machine = kLab1}));
  EXPECT_THAT(commands(look(yard, kLab1, at(2))), IsEmpty());
  EXPECT_THAT(commands(yard.ran(0, at(3))), ElementsAre("start 1#1 with 6 GB"))
      << "the keeper of the first answers";
}

TEST_F(Machines, NumberTheirGpusEachForItself) {
  Yard yard(PlanBuilder().tasks(3, gb(1)).on_gpus(1), kAnythingGoes, machine_with({gb(10)}));
  EXPECT_THAT(commands(look(yard, kLab0, at(1), machine_with({gb(10)}))), IsEmpty())
      << "the first has it already";
  EXPECT_THAT(
      commands(join(yard, kLab1, at(2), machine_with({gb(10), gb(10)}))),
      ElementsAre("start 1#1 with 1 GB, 0 of 1 whole", "start 2#1 with 1 GB, 1 of 1 whole"));
}

TEST_F(Machines, GiveAGpuToWhoNeedsOneThoughTheFirstHasNone) {
  Yard yard(PlanBuilder().tasks(1, gb(1)).on_gpus(1, gb(3)).tasks(1, gb(1)));
  EXPECT_THAT(commands(yard.first), ElementsAre("start 1#1 with 1 GB"));
  EXPECT_THAT(commands(join(yard, kLab1, at(1), machine_with({gb(10)}))),
              ElementsAre("start 0#1 with 1 GB, 3 GB on 0 of 1"));
}

TEST_F(Machines, TrainATwoPhaseTaskWhereItHasLoaded) {
  Yard yard(PlanBuilder().tasks(2, gb(6), model::cpus(4)).two_phase());
  EXPECT_THAT(commands(yard.first), ElementsAre("start 0#1 with 6 GB"));
  EXPECT_THAT(commands(join(yard, kLab1, at(1))), ElementsAre("start 1#1 with 6 GB on 1"));
  EXPECT_THAT(commands(yard.loaded(1, at(2))), ElementsAre("train 1#1 with 6 GB on 1"));
  EXPECT_THAT(commands(yard.loaded(0, at(3))), ElementsAre("train 0#1 with 6 GB"));
}

TEST_F(Machines, LoadATwoPhaseTaskOnlyWhereItCanTrain) {
  Yard yard(PlanBuilder()
                .tasks(1, gb(1), model::cpus(6))
                .two_phase()
                .tasks(1, gb(1))
                .two_phase()
                .on_gpus(1, gb(3)));
  EXPECT_THAT(commands(yard.first), IsEmpty()) << "it has 4 CPUs, and no GPU";
  EXPECT_THAT(commands(join(yard, kLab1, at(1), machine_with({gb(2)}))), IsEmpty());
  EXPECT_THAT(commands(join(yard, {2}, at(2), {.memory = gb(10), .cpus = model::cpus(8)})),
              ElementsAre("start 0#1 with 1 GB on 2"));
  EXPECT_THAT(commands(join(yard, {3}, at(3), machine_with({gb(10)}))),
              ElementsAre("start 1#1 with 1 GB on 3"));
}

TEST_F(Machines, KeepRoomForALoaderWhereItCanTrain) {
  const model::Policy patient{.memory_remain = Bytes{0}, .passes_max = 1};
  const model::Capacity small{.memory = gb(10), .cpus = model::cpus(2)};
  Yard yard(PlanBuilder()
                .tasks(1, gb(8), model::cpus(1))
                .tasks(1, gb(9), model::cpus(4))
                .two_phase()
                .tasks(4, gb(2), model::cpus(1)),
            patient);
  EXPECT_THAT(commands(yard.first), ElementsAre("start 0#1 with 8 GB", "start 2#1 with 2 GB"));
  EXPECT_THAT(commands(join(yard, kLab1, at(1), small)),
              ElementsAre("start 3#1 with 2 GB on 1", "start 4#1 with 2 GB on 1"))
      << "nothing is kept where the one of two phases has too few CPUs";
}

TEST_F(Machines, DoNotHoldOneAnothersLoadedTasksUp) {
  // Two of a kind load on each, and only one may train there at once.
  Yard yard(PlanBuilder().tasks(4, gb(4), model::cpus(2)).two_phase(), kAnythingGoes,
            {.memory = gb(10), .cpus = model::cpus(4)});
  EXPECT_THAT(commands(yard.first), ElementsAre("start 0#1 with 4 GB", "start 1#1 with 4 GB"));
  EXPECT_THAT(commands(join(yard, kLab1, at(1), {.memory = gb(10), .cpus = model::cpus(4)})),
              ElementsAre("start 2#1 with 4 GB on 1", "start 3#1 with 4 GB on 1"));
  EXPECT_THAT(commands(yard.loaded(3, at(2))), ElementsAre("train 3#1 with 4 GB on 1"));
  EXPECT_THAT(commands(yard.loaded(0, at(3))), ElementsAre("train 0#1 with 4 GB"));
}

TEST_F(Machines, LetATaskThatHasLoadedTrainWhereItIsWhenItsPriorityWasChanged) {
  Yard yard(PlanBuilder().tasks(3, gb(4), model::cpus(4)).two_phase());
  EXPECT_THAT(commands(yard.first), ElementsAre("start 0#1 with 4 GB"));
  EXPECT_THAT(commands(join(yard, kLab1, at(1))), ElementsAre("start 1#1 with 4 GB on 1"));
  EXPECT_THAT(commands(yard.loaded(1, at(2))),
              ElementsAre("train 1#1 with 4 GB on 1", "start 2#1 with 4 GB on 1"));
  EXPECT_THAT(commands(yard.loaded(2, at(3))), IsEmpty()) << "the other one has the CPUs";
  static_cast<void>(yard.on(at(4), model::PriorityAsked{.task = {2}, .request = 1, .priority = 7}));
  EXPECT_THAT(commands(yard.ended(1, at(5))), ElementsAre("train 2#1 with 4 GB on 1"));
}

TEST_F(Machines, KeepRoomForTheOldestOnOneAndLetOthersUseTheRest) {
  const model::Policy patient{.memory_remain = Bytes{0}, .passes_max = 1};
  Yard yard(PlanBuilder().tasks(2, gb(5)).tasks(1, gb(8)).tasks(8, gb(2)), patient);
  EXPECT_THAT(commands(yard.first), ElementsAre("start 0#1 with 5 GB", "start 1#1 with 5 GB"));
  EXPECT_THAT(commands(join(yard, kLab1, at(1), {.memory = gb(6), .cpus = model::cpus(4)})),
              ElementsAre("start 3#1 with 2 GB on 1", "start 4#1 with 2 GB on 1",
                          "start 5#1 with 2 GB on 1"))
      << "the one that needs 8 GB never fits there";
  for (const std::uint32_t task : {0U, 1U, 3U}) static_cast<void>(yard.started(task, at(1)));
  // Room that comes free where it fits is kept for it.
  EXPECT_THAT(commands(yard.ended(0, at(100))), ElementsAre("start 6#1 with 2 GB"))
      << "2 GB beside the 8 that are kept";
  EXPECT_THAT(commands(yard.ended(3, at(101))), ElementsAre("start 7#1 with 2 GB on 1"));
  EXPECT_THAT(commands(yard.ended(1, at(102))), ElementsAre("start 2#1 with 8 GB"));
}

TEST_F(Machines, SayOfTheOneWhereATaskCameFurthestWhyItWaits) {
  Yard yard(PlanBuilder().tasks(1, gb(1), model::cpus(4)).tasks(1, gb(6), model::cpus(2)));
  EXPECT_THAT(changes(yard.first),
              Contains("shape 1: needs 2 CPUs: all 4 CPUs are reserved by 1 task"));
  const model::Decision joined =
      join(yard, kLab1, at(1), {.memory = gb(4), .cpus = model::cpus(4)});
  EXPECT_THAT(changes(joined), ElementsAre("shape 1: needs 6 GB of memory, 4 GB available"));
  ASSERT_FALSE(joined.changes.empty());
  EXPECT_EQ(std::get<model::ReasonChanged>(joined.changes.front()).reason.machine, kLab1);
}

TEST_F(Machines, SayThatThereIsNoneWhereAllAreGone) {
  Yard yard(PlanBuilder().tasks(1, gb(6)));
  static_cast<void>(yard.on(at(1), model::KeeperSilent{.silent = true}));
  static_cast<void>(yard.ended(0, at(1), model::Vanished{"x"}));
  EXPECT_THAT(
      changes(yard.on(at(1), model::MachineGone{.machine = kLab0, .why = "the time is over"})),
      ElementsAre("shape 0: no machine is available"));
}

TEST_F(Machines, TryWhatRanOutOfMemoryAgainOnALargerOne) {
  Yard yard(PlanBuilder().tasks(1, gb(9)));
  static_cast<void>(join(yard, kLab1, at(1), {.memory = gb(40), .cpus = model::cpus(4)}));
  static_cast<void>(yard.started(0, at(1)));
  const model::Decision again =
      yard.ended(0, at(2), model::KilledBy{.signal = 9, .out_of_memory = true}, gb(12));
  EXPECT_THAT(commands(again), ElementsAre("start 0#2 with 12 GB on 1"));
}

TEST_F(Machines, TryTheLastTimeOnTheLargestGpusOfAll) {
  const model::Policy once{.memory_remain = Bytes{0}, .train_retries = 2};
  const model::Capacity small = machine_with({gb(10)});
  const model::Capacity large = machine_with({gb(80)});
  Yard yard(PlanBuilder().tasks(1, gb(1)).on_gpus(1, gb(5)).tasks(1, gb(1)).on_gpus(1, gb(70)),
            once, small);
  static_cast<void>(look(yard, kLab0, at(0), small));
  EXPECT_THAT(commands(join(yard, kLab1, at(1), large)),
              ElementsAre("start 1#1 with 1 GB, 70 GB on 0 of 1"));
  static_cast<void>(yard.started(0, at(1)));
  static_cast<void>(yard.started(1, at(1)));
  const model::AttemptEnded failed{.key = {.task = {0}, .attempt = 1},
                                   .end = model::ExitedWith{1},
                                   .usage = {},
                                   .out_of_memory = "CUDA out of memory",
                                   .of_gpu = true};
  const model::Decision retried = yard.on(at(2), failed);
  EXPECT_THAT(
      changes(retried),
      ElementsAre("0#1 INTERRUPT OUT_OF_MEMORY: CUDA out of memory; retry 1 of 1, alone on the "
                  "largest GPU",
                  "shape 0: needs a whole GPU of the largest size for its last retry, 0 of 1 GPU "
                  "without tasks"));
  EXPECT_THAT(commands(retried), IsEmpty())
      << "the small one is free, and it waits for the large one";
  EXPECT_THAT(commands(yard.ended(1, at(3))), IsEmpty()) << "its memory is not shown to be free";
  EXPECT_THAT(commands(look(yard, kLab1, at(4), large)),
              ElementsAre("start 0#2 with 1 GB, 0 of 1 whole"));
}

TEST_F(Machines, TryTheLastTimeOnTheLargestGpusWhereTheRestOfATaskFits) {
  const model::Policy once{.memory_remain = Bytes{0}, .train_retries = 2};
  const model::Capacity small = machine_with({gb(10)});
  Yard yard(PlanBuilder().tasks(1, gb(3)).on_gpus(1, gb(5)), once, small);
  static_cast<void>(look(yard, kLab0, at(0), small));
  model::Capacity little_memory = machine_with({gb(80)});
  little_memory.memory = gb(2);
  static_cast<void>(join(yard, kLab1, at(1), little_memory));
  static_cast<void>(yard.started(0, at(1)));
  static_cast<void>(yard.on(at(2), model::AttemptEnded{.key = {.task = {0}, .attempt = 1},
                                                       .end = model::ExitedWith{1},
                                                       .usage = {},
                                                       .out_of_memory = "CUDA out of memory",
                                                       .of_gpu = true}));
  EXPECT_THAT(commands(look(yard, kLab0, at(3), small)),
              ElementsAre("start 0#2 with 3 GB, 0 whole"))
      << "the larger one is where it never fits";
}

TEST_F(Machines, AreAskedForNoMoreOfWhatWasLearnedThanThoseHaveThatAreThere) {
  const model::Policy learns{.memory_remain = Bytes{0}, .auto_adjust = true};
  Yard yard(PlanBuilder().tasks(4, gb(6)).learns_memory(), learns);
  EXPECT_THAT(commands(join(yard, kLab1, at(1), {.memory = gb(13), .cpus = model::cpus(4)})),
              ElementsAre("start 1#1 with 6 GB on 1", "start 2#1 with 6 GB on 1"));
  for (const std::uint32_t task : {0U, 1U, 2U}) static_cast<void>(yard.started(task, at(1)));
  EXPECT_THAT(commands(yard.ended(1, at(2), model::ExitedWith{0}, gb(12))), IsEmpty())
      << "12 GB and a margin are nowhere free";
  static_cast<void>(yard.on(at(60), model::KeeperSilent{.silent = true, .machine = kLab1}));
  static_cast<void>(yard.ended(2, at(60), model::Vanished{"nothing was heard of it"}));
  static_cast<void>(yard.on(at(60), model::MachineGone{.machine = kLab1, .why = "silent"}));
  EXPECT_THAT(commands(yard.ended(0, at(61))), ElementsAre("start 2#2 with 10 GB"))
      << "all that the first has";
}

TEST_F(Machines, GiveUpOnWhatFitsOnNoneAsItsGpuIsGone) {
  const model::Capacity own = machine_with({gb(10)});
  Yard yard(PlanBuilder().tasks(2, gb(8)).on_gpus(1), kAnythingGoes, own);
  static_cast<void>(look(yard, kLab0, at(0), own));
  model::Capacity little_memory = machine_with({gb(10)});
  little_memory.memory = gb(2);
  static_cast<void>(join(yard, kLab1, at(1), little_memory));
  const model::GpusSampled gone{.gpus = {{.present = false}}, .uses = {}};
  static_cast<void>(yard.on(at(2), gone));
  const model::Decision later = yard.on(at(2) + kAnythingGoes.gpu_gone_max, gone);
  EXPECT_THAT(changes(later), Contains(::testing::StartsWith("1#0 INIT SKIPPED")))
      << "the other has a GPU, and no memory for it";
}

TEST_F(Machines, LetATaskGoBackToItsGpuWhereTheOthersLackMemoryForIt) {
  const model::Capacity own = machine_with({gb(10)});
  Yard yard(PlanBuilder().tasks(1, gb(8)).on_gpus(1), kAnythingGoes, own);
  static_cast<void>(look(yard, kLab0, at(0), own));
  model::Capacity little_memory = machine_with({gb(10)});
  little_memory.memory = gb(2);
  static_cast<void>(join(yard, kLab1, at(1), little_memory));
  static_cast<void>(yard.started(0, at(1)));
  static_cast<void>(yard.on(at(2), model::GpusSampled{.gpus = {{.present = false}}, .uses = {}}));
  static_cast<void>(yard.ended(0, at(3), model::ExitedWith{1}));
  static_cast<void>(look(yard, kLab0, at(4), own));
  EXPECT_THAT(commands(look(yard, kLab0, at(14), own)),
              ElementsAre("start 0#2 with 8 GB, 0 whole"));
}

TEST_F(Machines, InterruptATaskOfTheOneThatRunsShortAlone) {
  model::Policy watches{.memory_remain = gb(1), .watches_memory = true};
  Yard yard(PlanBuilder().tasks(2, gb(6)), watches);
  static_cast<void>(join(yard, kLab1, at(1)));
  static_cast<void>(yard.started(0, at(1)));
  static_cast<void>(yard.started(1, at(1)));
  const auto reading = [&yard](model::MachineIndex machine, std::uint32_t task, Bytes available,
                               Instant when) {
    return commands(yard.on(
        when, model::Sampled{.memory_available = available,
                             .tasks = {{.key = {.task = {task}, .attempt = 1}, .memory = gb(8)}},
                             .machine = machine}));
  };
  EXPECT_THAT(reading(kLab0, 0, gb(2), at(2)), IsEmpty());
  EXPECT_THAT(reading(kLab1, 1, mb(100), at(2)), IsEmpty());
  EXPECT_THAT(reading(kLab0, 0, gb(2), at(3)), IsEmpty());
  EXPECT_THAT(reading(kLab1, 1, mb(100), at(3)), ElementsAre("stop 1#1"));
}

TEST_F(Machines, HaveAHeadroomEach) {
  Yard yard(PlanBuilder().tasks(3, gb(6)));
  static_cast<void>(join(yard, kLab1, at(1)));
  const model::Decision seen =
      yard.on(at(2), model::Sampled{.memory_available = gb(3), .machine = kLab1});
  std::vector<std::pair<std::uint32_t, Bytes>> told;
  for (const model::Change& change : seen.changes) {
    const auto* const room = std::get_if<model::HeadroomSeen>(&change);
    if (room != nullptr) told.emplace_back(room->machine.value, room->headroom.memory_free);
  }
  EXPECT_THAT(told, ElementsAre(std::pair(1U, gb(3) - gb(6))));
}

}  // namespace
}  // namespace trainyard::schedule

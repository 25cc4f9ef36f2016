// The places where tasks may run, of several machines and of their GPUs.
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
#include "model/status.h"
#include "model/waiting.h"
#include "schedule/test_yard.h"

namespace trainyard::schedule {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr model::MachineIndex kBig{1};

model::Capacity having_gpus(const std::vector<std::string>& names) {
  model::Capacity machine = kMachine;
  for (const std::string& name : names) {
    const auto number = static_cast<int>(machine.gpus.size());
    machine.gpus.push_back(
        {.number = number, .name = name, .pci = std::to_string(number), .memory = gb(10)});
  }
  return machine;
}

/// Sends the first readings of a machine that has joined.
model::Decision look(Yard& yard, model::MachineIndex machine, const model::Capacity& capacity,
                     Instant when) {
  if (!capacity.gpus.empty()) {
    static_cast<void>(yard.on(
        when, model::GpusSampled{.gpus = std::vector<model::GpuReading>(capacity.gpus.size()),
                                 .uses = {},
                                 .machine = machine}));
  }
  return yard.on(when, model::Sampled{.memory_available = capacity.memory, .machine = machine});
}

/// The tasks that start on it as it joins.
std::vector<std::string> join(Yard& yard, std::string name, Instant when,
                              const model::Capacity& capacity = kMachine) {
  static_cast<void>(yard.on(
      when, model::MachineJoined{.machine = kBig, .name = std::move(name), .capacity = capacity}));
  return commands(look(yard, kBig, capacity, when));
}

TEST(Placement, StartsATaskOnAMachineOfThatNameAndOnNoOther) {
  Yard yard(PlanBuilder().tasks(3, gb(6)).where({.machine = "big*"}));
  EXPECT_THAT(commands(yard.first), IsEmpty()) << "the one that is there is called 'here'";
  EXPECT_THAT(join(yard, "Big1", at(1)), ElementsAre("start 0#1 with 6 GB on 1"));
  EXPECT_THAT(commands(yard.ran(0, at(2))), ElementsAre("start 1#1 with 6 GB on 1"));
}

TEST(Placement, LetsOthersPassWhereNoMachineIsTheOne) {
  Yard yard(PlanBuilder().tasks(1, gb(6)).where({.machine = "big*"}).tasks(2, gb(6)));
  EXPECT_THAT(commands(yard.first), ElementsAre("start 1#1 with 6 GB"));
  EXPECT_THAT(commands(yard.ran(1, at(2))), ElementsAre("start 2#1 with 6 GB"));
}

TEST(Placement, SaysThatNoMachineThatIsThereIsTheOne) {
  Yard yard(PlanBuilder().tasks(1, gb(6)).where({.machine = "big*"}));
  EXPECT_THAT(changes(yard.first),
              Contains("shape 0: where: no available machine is called 'big*'"));
  const model::Capacity small{.memory = gb(5), .cpus = model::cpus(8)};
  static_cast<void>(
      yard.on(at(1), model::MachineJoined{.machine = kBig, .name = "big1", .capacity = small}));
  EXPECT_THAT(changes(look(yard, kBig, small, at(1))),
              Contains(StartsWith("shape 0: needs 6 GB of memory")))
      << "one that is the one lacks room";
  const model::Decision gone = yard.on(at(3), model::MachineGone{.machine = kBig, .why = "silent"});
  EXPECT_THAT(changes(gone), Contains("shape 0: where: no available machine is called 'big*'"));
}

TEST(Placement, TriesAgainWhereATaskMayRun) {
  Yard yard(PlanBuilder().tasks(1, gb(6)).where({.machine = "big1"}).retries({.failures = 1}));
  EXPECT_THAT(join(yard, "big1", at(1)), ElementsAre("start 0#1 with 6 GB on 1"));
  EXPECT_THAT(commands(yard.ran(0, at(2), model::ExitedWith{3})),
              ElementsAre("start 0#2 with 6 GB on 1"))
      << "the other machine is idle";
}

TEST(Placement, AsksForNoMoreMemoryThanAMachineHasWhereItMayRun) {
  Yard yard(PlanBuilder().tasks(1, gb(6)).where({.machine = "small"}), kAnythingGoes,
            {.memory = gb(100), .cpus = model::cpus(8)});
  EXPECT_THAT(join(yard, "small", at(1), {.memory = gb(7), .cpus = model::cpus(8)}),
              ElementsAre("start 0#1 with 6 GB on 1"));
  static_cast<void>(yard.started(0, at(1)));
  const model::Decision ended =
      yard.on(at(2), model::AttemptEnded{.key = {.task = {0}, .attempt = 1},
                                         .end = model::KilledBy{.signal = 9, .out_of_memory = true},
                                         .usage = {.memory_peak = gb(6)}});
  EXPECT_THAT(commands(ended), ElementsAre("start 0#2 with 7 GB on 1"))
      << "9 GB would be had on the other one alone";
}

TEST(Placement, GivesATaskGpusOfThatNameAlone) {
  const Yard yard(PlanBuilder().tasks(3, gb(1)).on_gpus(1).where({.gpu = "h100"}), kAnythingGoes,
                  having_gpus({"NVIDIA A100", "NVIDIA H100", "NVIDIA A100"}));
  EXPECT_THAT(commands(yard.first), ElementsAre("start 0#1 with 1 GB, 1 whole"));
}

TEST(Placement, StartsATaskOnNoMachineWithoutAGpuOfThatName) {
  Yard yard(PlanBuilder().tasks(1, gb(1)).on_gpus(1).where({.gpu = "h100"}), kAnythingGoes,
            having_gpus({"NVIDIA A100"}));
  EXPECT_THAT(changes(yard.first),
              Contains("shape 0: where: no available machine has a GPU called 'h100'"));
  EXPECT_THAT(join(yard, "big1", at(2), having_gpus({"NVIDIA A100", "NVIDIA H100"})),
              ElementsAre("start 0#1 with 1 GB, 1 of 1 whole"));
}

TEST(Placement, SaysOfGpusOfAnotherNameNothing) {
  const Yard yard(PlanBuilder().tasks(2, gb(1)).on_gpus(1, gb(6)).where({.gpu = "H100"}),
                  kAnythingGoes, having_gpus({"NVIDIA A100", "NVIDIA H100"}));
  EXPECT_THAT(changes(yard.first),
              Contains("shape 0: needs 6 GB on its GPU, GPU 1 has the most free memory: 3 GB"))
      << "GPU 0 is free, and is none of those";
}

TEST(Placement, LoadsATaskOfTwoPhasesWhereItMayTrain) {
  Yard yard(PlanBuilder().tasks(1, gb(1)).on_gpus(1).two_phase().where({.gpu = "H100"}),
            kAnythingGoes, having_gpus({"NVIDIA A100"}));
  EXPECT_THAT(commands(look(yard, {0}, having_gpus({"NVIDIA A100"}), at(1))), IsEmpty());
  EXPECT_THAT(join(yard, "big1", at(2), having_gpus({"NVIDIA A100", "NVIDIA H100"})),
              ElementsAre("start 0#1 with 1 GB on 1"));
  EXPECT_THAT(commands(yard.loaded(0, at(3))), ElementsAre("train 0#1 with 1 GB, 1 of 1 whole"));
}

}  // namespace
}  // namespace trainyard::schedule

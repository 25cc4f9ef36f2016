#include "app/planned_machines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"

namespace trainyard::app {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

/// A machine with a GPU of 24 GB, and GPUs of these numbers that have never answered.
MachineNow machine_lab(const std::vector<int>& silent = {}) {
  MachineNow now{.host = "lab",
                 .capacity = {.memory = gb(64),
                              .cpus = model::cpus(8),
                              .processes_max = 100,
                              .gpus = {{.number = 0, .uuid = "GPU-a", .memory = gb(24)}}},
                 .others = {{.used = gb(5)}}};
  for (const int number : silent) now.capacity.gpus.push_back({.number = number, .late = true});
  return now;
}

std::vector<PlannedMachines> machines_of(const MachineWords& words) {
  return planned_machines(words, machine_lab()).value();
}

/// "4x24GB: 24 24 24 24": the name of each, and the memory of its GPUs in GB.
std::vector<std::string> named_gpus(const MachineWords& words) {
  std::vector<std::string> names;
  for (const PlannedMachines& machines : machines_of(words)) {
    names.push_back(machines.name + ":");
    for (const model::Gpu& gpu : machines.kinds.at(0).capacity.gpus) {
      names.back() += " " + std::to_string(gpu.memory.count / gb(1).count);
    }
  }
  return names;
}

std::string wrong_words(const MachineWords& words) {
  const auto machines = planned_machines(words, machine_lab());
  return machines ? std::string() : machines.error().message;
}

TEST(PlannedMachines, WithoutWordsTheyAreThisMachineAsItIsNow) {
  const std::vector<PlannedMachines> machines = machines_of({});
  ASSERT_THAT(machines, SizeIs(1));
  const PlannedMachines& here = machines[0];
  EXPECT_EQ(here.name, "this machine");
  EXPECT_EQ(here.host, "lab");
  EXPECT_EQ(here.silent, "");
  EXPECT_EQ(here.others, machine_lab().others);
  ASSERT_THAT(here.kinds, SizeIs(1));
  EXPECT_EQ(here.kinds[0].capacity.gpus, machine_lab().capacity.gpus);
  EXPECT_EQ(here.kinds[0].capacity.memory, gb(64));
  EXPECT_EQ(here.kinds[0].capacity.processes_max, 0);
  EXPECT_EQ(here.all(), here.one_of_each());
}

TEST(PlannedMachines, GpusThatHaveNeverAnsweredAreLeftOutAndNamed) {
  const auto silent_of = [](const std::vector<int>& numbers) {
    const auto machines = planned_machines({}, machine_lab(numbers)).value();
    EXPECT_THAT(machines.at(0).kinds.at(0).capacity.gpus, SizeIs(1));
    return machines.at(0).silent;
  };
  EXPECT_EQ(silent_of({1}), "GPU 1 DOES NOT ANSWER, and is left out here ('trainyard devices')");
  EXPECT_EQ(silent_of({1, 2}),
            "GPUs 1, 2 DO NOT ANSWER, and are left out here ('trainyard devices')");
}

TEST(PlannedMachines, MemoryAndCpusTakeThePlaceOfThoseOfThisMachine) {
  const PlannedMachines here = machines_of({.memory = "16GB", .cpus = "1"}).at(0);
  EXPECT_EQ(here.name, "16GB of memory, 1 CPU");
  EXPECT_EQ(here.host, "lab");
  EXPECT_EQ(here.kinds.at(0).capacity.memory, gb(16));
  EXPECT_EQ(here.kinds.at(0).capacity.cpus, model::cpus(1));
  EXPECT_EQ(here.kinds.at(0).capacity.gpus, machine_lab().capacity.gpus);
}

TEST(PlannedMachines, EachWordForGpusIsAMachineWithThese) {
  EXPECT_THAT(named_gpus({.gpus = {"2x24GB", "80GB", "2x 12GB", "0"}, .cpus = "16"}),
              ElementsAre("2x24GB, 16 CPUs: 24 24", "80GB, 16 CPUs: 80", "2x 12GB, 16 CPUs: 12 12",
                          "no GPU, 16 CPUs:"));
  const PlannedMachines machine = machines_of({.gpus = {"2x24GB"}}).at(0);
  EXPECT_EQ(machine.host, "") << "not this machine";
  EXPECT_THAT(machine.others, IsEmpty());
  const model::Capacity& capacity = machine.kinds.at(0).capacity;
  EXPECT_EQ(capacity.memory, gb(64)) << "as here";
  EXPECT_NE(capacity.gpus.at(0).uuid, capacity.gpus.at(1).uuid);
  EXPECT_NE(capacity.gpus.at(0).pci, capacity.gpus.at(1).pci);
}

TEST(PlannedMachines, AWordForGpusHasTheirNumberAndTheMemoryOfEach) {
  EXPECT_THAT(wrong_words({.gpus = {"24GB", "4y24GB"}}), StartsWith("--gpus: '4y24GB'"));
  for (const std::string word : {"0x4GB", "1001x4GB", "-1x4GB", "ax4GB", "x4GB"}) {
    EXPECT_EQ(wrong_words({.gpus = {word}}),
              "--gpus: '" + word + "' is not valid; write it as in 4x24GB");
  }
  for (const std::string word : {"4x", "4xA100", ""}) {
    EXPECT_EQ(wrong_words({.gpus = {word}}),
              "--gpus: '" + word + "' is not valid; name the memory of each GPU, as in 4x24GB");
  }
  EXPECT_EQ(wrong_words({.gpus = {"2"}}),
            "--gpus: '2' does not say how much memory a GPU has (did you mean '2x24GB'?)");
}

TEST(PlannedMachines, ErrorsNameTheOption) {
  EXPECT_THAT(wrong_words({.gpus = {"24GB"}, .memory = "64gb"}), StartsWith("--memory: "));
  EXPECT_THAT(wrong_words({.cpus = "many"}), StartsWith("--cpus: "));
  EXPECT_THAT(wrong_words({.machines = {"2x(24GB, 4 CPU s)"}}),
              StartsWith("--machines: '2x(24GB, 4 CPU s)', character 10: "));
}

TEST(PlannedMachines, AKindHasTheUsualAmountsWhereItNamesNone) {
  const std::string word = "2x(1x12GB, 4 CPUs) + 1x(32GB)";
  const PlannedMachines machines = machines_of({.machines = {word}, .cpus = "16"}).at(0);
  EXPECT_EQ(machines.name, word);
  EXPECT_EQ(machines.host, "");
  ASSERT_THAT(machines.kinds, SizeIs(2));
  const report::PlannedKind& first = machines.kinds[0];
  EXPECT_EQ(first.text, "2x(1x12GB, 4 CPUs)");
  EXPECT_EQ(first.machines, 2U);
  EXPECT_EQ(first.capacity.memory, gb(64));
  EXPECT_EQ(first.capacity.cpus, model::cpus(4));
  EXPECT_THAT(first.capacity.gpus, SizeIs(1));
  const report::PlannedKind& second = machines.kinds[1];
  EXPECT_EQ(second.capacity.memory, gb(32));
  EXPECT_EQ(second.capacity.cpus, model::cpus(16));
  EXPECT_THAT(second.capacity.gpus, IsEmpty());
  EXPECT_THAT(machines.all(), SizeIs(3));
  EXPECT_THAT(machines.one_of_each(), SizeIs(2));
  EXPECT_EQ(machines.most().memory, gb(64));
  EXPECT_EQ(machines.most().cpus, model::cpus(16));
  EXPECT_THAT(machines.most().gpus, SizeIs(1));
}

TEST(GpusFor, EachTaskFitsWithAMargin) {
  const auto gpus_of = [](const model::Request& request) {
    model::Plan plan;
    plan.shapes = {{.terms = {.request = {.gpus = 1}}}, {.terms = {.request = request}}};
    return gpus_for(plan);
  };
  EXPECT_EQ(gpus_for({}), "1x24GB");
  EXPECT_EQ(gpus_of({.gpus = 1, .gpu_memory = gb(10)}), "1x24GB");
  EXPECT_EQ(gpus_of({.gpus = 1, .gpu_memory = gb(40)}), "1x50GB");
  EXPECT_EQ(gpus_of({.gpus = 4}), "4x24GB");
  EXPECT_EQ(gpus_of({.gpus = 1, .gpu = model::GpuIndex{9}}), "10x24GB");
}

TEST(AdviceOnOthers, TheSameGpusAreFreeInTheCommand) {
  PlannedMachines here{.name = "this machine",
                       .kinds = {{.capacity = {.gpus = {{.memory = gb(8)}, {.memory = gb(6)}}}}},
                       .others = {{.used = gb(5)}, {}}};
  const std::string advice =
      ". The processes on the GPUs now are assumed to stay: 'trainyard plan job.yaml --gpus "
      "2x7629MiB' simulates the job on free GPUs";
  EXPECT_EQ(advice_on_others("job.yaml", here), advice);
  here.others[0].other_user = 1000;
  EXPECT_EQ(advice_on_others("job.yaml", here),
            advice + ", '--set other-users=share' next to processes of other users");
  here.others[0].used = Bytes{};
  EXPECT_EQ(advice_on_others("job.yaml", here), "");
  here.others = {};
  EXPECT_EQ(advice_on_others("job.yaml", here), "");
}

}  // namespace
}  // namespace trainyard::app

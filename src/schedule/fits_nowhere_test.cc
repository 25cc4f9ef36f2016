#include "schedule/fits_nowhere.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::schedule {
namespace {

using ::testing::StartsWith;

model::NamedMachine machine(std::string name, const std::vector<std::string>& gpus = {}) {
  model::NamedMachine made{.name = std::move(name),
                           .capacity = {.memory = gb(10), .cpus = model::cpus(8)}};
  for (const std::string& gpu : gpus) {
    made.capacity.gpus.push_back({.number = static_cast<int>(made.capacity.gpus.size()),
                                  .name = gpu,
                                  .memory = gpu.contains("H100") ? gb(80) : gb(40)});
  }
  return made;
}

const std::vector<model::NamedMachine> kLab{
    machine("lab1"), machine("lab2", {"NVIDIA H100", "NVIDIA A100"}),
    machine("big1", {"NVIDIA A100", "NVIDIA A100", "NVIDIA A100"})};

std::string why(const model::Request& request,
                const std::vector<model::NamedMachine>& machines = kLab,
                const MachineText& here = {}) {
  const auto misfit = fits_nowhere(request, {}, machines, here);
  return misfit ? misfit->why : std::string();
}

TEST(FitsNowhere, IsSaidOfWhatNoMachineCanHold) {
  EXPECT_EQ(why({.memory = gb(10)}), "");
  EXPECT_EQ(why({.cpus = model::cpus(9)}),
            "fits on none of lab1, lab2, big1: needs 9 CPUs, lab1 has 8; request at most 8");
  EXPECT_EQ(why({.cpus = model::cpus(9)}, {machine("here")}),
            "needs 9 CPUs, this machine has 8; request at most 8");
  model::NamedMachine empty = machine("here");
  empty.capacity.cpus = model::cpus(0);
  EXPECT_EQ(why({.cpus = model::cpus(1)}, {empty}), "needs 1 CPU, this machine has 0");
  EXPECT_EQ(why({.gpus = 1, .gpu_memory = gb(70)}), "")
      << "the machine with most GPUs is not the one with the largest";
}

TEST(FitsNowhere, NamesThePartOfTheRequestThatTheTextIsAbout) {
  const auto part = [](const model::Request& request,
                       const std::vector<model::NamedMachine>& machines = kLab) {
    return fits_nowhere(request, {}, machines).value().part;
  };
  EXPECT_EQ(part({.memory = gb(11), .cpus = model::cpus(9)}), RequestPart::Memory);
  EXPECT_EQ(part({.cpus = model::cpus(9), .gpus = 9}), RequestPart::Cpus);
  EXPECT_EQ(part({.gpus = 4}), RequestPart::Gpus);
  EXPECT_EQ(part({.gpus = 1}, {machine("a")}), RequestPart::Gpus);
  EXPECT_EQ(part({.gpus = 2, .gpu_memory = gb(90)}), RequestPart::GpuMemory);
  EXPECT_EQ(part({.gpus = 1, .gpu = model::GpuIndex{3}}, {kLab.back()}), RequestPart::Device);
  EXPECT_EQ(part({.where = {.machine = "node*"}}), RequestPart::Where);
  EXPECT_EQ(part({.gpus = 2, .where = {.gpu = "H100"}}), RequestPart::Gpus);
  EXPECT_EQ(part({.cpus = model::cpus(9), .where = {.machine = "lab*"}}), RequestPart::Cpus);
  std::vector<model::NamedMachine> two{machine("a"), machine("b")};
  two[0].capacity.memory = gb(15);
  two[1].capacity.cpus = model::cpus(16);
  EXPECT_EQ(part({.memory = gb(15), .cpus = model::cpus(9)}, two), RequestPart::Cpus)
      << "each amount fits on one of the machines";
}

TEST(FitsNowhere, NamesTheMachineThatLacksTheFewestAmounts) {
  std::vector<model::NamedMachine> two{machine("a"), machine("b", {"NVIDIA A100"})};
  two[0].capacity.memory = gb(15);
  two[1].capacity.cpus = model::cpus(16);
  EXPECT_THAT(why({.memory = gb(15), .cpus = model::cpus(9), .gpus = 1}, two),
              StartsWith("fits on none of a, b: needs 15 GB of memory, b has 10 GB available"))
      << "a lacks CPUs and a GPU";
  EXPECT_EQ(why({.memory = gb(12), .cpus = model::cpus(17)}, two),
            "fits on none of a, b: needs 17 CPUs, a has 8; request at most 8")
      << "b lacks memory, too";
}

TEST(FitsNowhere, NamesOfThoseTheMachineThatGrantsTheLargestPart) {
  std::vector<model::NamedMachine> two{machine("a"), machine("b")};
  two[0].capacity.cpus = model::cpus(16);
  EXPECT_EQ(why({.cpus = model::cpus(17)}, two),
            "fits on none of a, b: needs 17 CPUs, a has 16; request at most 16");
  two[1].capacity.memory = gb(12);
  EXPECT_THAT(why({.memory = gb(11), .cpus = model::cpus(16)}, two),
              StartsWith("fits on none of a, b: needs 11 GB of memory, a has 10 GB available"))
      << "b has half the CPUs";
  EXPECT_EQ(why({.gpus = 4}),
            "fits on none of lab1, lab2, big1: needs 4 GPUs, big1 has 3; request at most 3");
}

TEST(FitsNowhere, NamesTheMachinesThatThereAreWhereNoneIsCalledSo) {
  EXPECT_EQ(why({.where = {.machine = "lab*"}}), "");
  EXPECT_EQ(why({.where = {.machine = "node*"}}),
            "where: no machine is called 'node*'; the machines are lab1, lab2, big1");
  EXPECT_EQ(why({.where = {.machine = "node*"}}, {machine("here")}),
            "where: no machine is called 'node*'; the only machine is here");
  std::vector<model::NamedMachine> many;
  for (int i = 0; i < 11; ++i) many.push_back(machine("m" + std::to_string(i)));
  EXPECT_EQ(
      why({.where = {.machine = "node*"}}, many),
      "where: no machine is called 'node*'; the machines are m0, m1, m2, m3, m4, m5, m6, m7 and 3 "
      "more");
}

TEST(FitsNowhere, NamesTheirGpusWhereNoneIsCalledSo) {
  EXPECT_EQ(why({.gpus = 1, .where = {.gpu = "h100"}}), "");
  EXPECT_EQ(why({.gpus = 1, .where = {.gpu = "H200"}}),
            "where: no machine has a GPU called 'H200'; the machines are lab1 (no GPU), lab2 "
            "(NVIDIA A100, NVIDIA H100), big1 (NVIDIA A100)");
  EXPECT_EQ(
      why({.gpus = 1, .where = {.machine = "big*", .gpu = "H100"}}),
      "where: no machine is called 'big*' and has a GPU called 'H100'; the machines are lab1 (no "
      "GPU), lab2 (NVIDIA A100, NVIDIA H100), big1 (NVIDIA A100)");
}

TEST(FitsNowhere, CountsTheGpusThatAreCalledSoAndNoOthers) {
  EXPECT_EQ(why({.gpus = 2, .where = {.gpu = "H100"}}),
            "fits on none of lab2: needs 2 GPUs named 'H100', lab2 has 1; request at most 1");
  EXPECT_EQ(why({.gpus = 3, .where = {.gpu = "A100"}}), "");
  EXPECT_EQ(why({.gpus = 1, .gpu_memory = gb(70), .where = {.gpu = "A100"}}),
            "fits on none of lab2, big1: needs 70 GB of memory on a GPU, the largest here has 36 "
            "GB available after what is kept free; request at most 36GB (if no other "
            "process uses any)");
}

TEST(FitsNowhere, LooksAtNoNamesOfMachinesThatAreMadeUp) {
  const std::vector<model::NamedMachine> made_up{machine(""), machine("", {"", ""})};
  EXPECT_EQ(why({.gpus = 1, .where = {.machine = "lab*", .gpu = "H100"}}, made_up), "");
  EXPECT_EQ(why({.cpus = model::cpus(9)}, made_up),
            "fits on none of them: needs 9 CPUs, this machine has 8; request at most 8");
  const MachineText planned{.name = "the planned machine (2x(8 CPUs))", .is_planned = true};
  EXPECT_EQ(why({.cpus = model::cpus(9)}, made_up, planned),
            "fits on none of them: needs 9 CPUs, the planned machine (2x(8 CPUs)) has 8; "
            "request at most 8");
  EXPECT_EQ(why({.memory = gb(11)}, made_up, planned),
            "fits on none of them: needs 11 GB of memory, the planned machine (2x(8 CPUs)) has 10 "
            "GB available (10 GB less 0 B kept free); request at most 10GB")
      << "no other process runs there";
}

TEST(FitsNowhere, TakesAGpuThatHasNotAnsweredYetForWhatItMayBe) {
  model::NamedMachine late = machine("late", {""});
  late.capacity.gpus.front() = {.late = true};
  EXPECT_EQ(why({.gpus = 1, .where = {.gpu = "H100"}}, {late}), "");
}

}  // namespace
}  // namespace trainyard::schedule

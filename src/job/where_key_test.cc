// `where`: its valid values, the messages for others, and the jobs refused because of it.
#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "job/job.h"
#include "job/test_job.h"
#include "job/test_task_keys.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/site_wish.h"

namespace trainyard::job {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> mistakes_of_keys(std::string_view keys) {
  return mistakes_of(fmt::format("groups:\n- name: g\n  tasks: [{{{}, command: x}}]\n", keys));
}

/// The machines and GPUs that the first task wants.
model::SiteWish where_in(std::string_view text) {
  return job_of(text, in_job_directory(), examples_machine())
      .plan()
      .shape_of({0})
      .terms.request.where;
}

std::vector<std::string> mistakes_where(std::string_view text,
                                        std::vector<model::NamedMachine> machines) {
  LoadOptions options = in_job_directory();
  options.machines = std::move(machines);
  return mistakes_of(text, options, examples_machine());
}

model::NamedMachine machine_called(std::string name) {
  return {.name = std::move(name), .capacity = small_machine()};
}

TEST(Where, IsReadAsKeysOrAsOneText) {
  EXPECT_EQ(
      where_in("groups: [{tasks: [{command: x, gpus: 1, where: {machine: 'lab*', gpu: card}}]}]")
          .machine,
      "lab*");
  for (const char* const where : {"{gpu: card, machine: lab7}", "'machine=lab7,gpu=card'"}) {
    EXPECT_EQ(
        where_in(fmt::format("groups: [{{tasks: [{{command: x, gpus: 1, where: {}}}]}}]", where)),
        (model::SiteWish{.machine = "lab7", .gpu = "card"}));
  }
}

TEST(Where, OfATaskCountsInThePlaceOfThatOfItsGroup) {
  const Job job = job_of(
      "groups: [{where: {machine: lab1}, matrix: {n: [2, 3]}, tasks: [{id: 'a{n}', command: x}, "
      "{id: 'b{n}', command: x, where: {machine: 'lab{n}'}}]}]");
  std::vector<std::string> machines;
  for (const model::PlannedTask& task : job.plan().tasks) {
    machines.push_back(job.plan().shapes[task.shape.value].terms.request.where.machine);
  }
  EXPECT_THAT(machines, ElementsAre("lab1", "lab2", "lab1", "lab3"));
}

TEST(Where, SaysNothingOfGpusToATaskWithoutOne) {
  const Job job = job_of(
      "groups: [{where: {machine: m, gpu: card}, tasks: [{id: a, command: x}, {id: b, command: x, "
      "gpus: 1}]}]",
      in_job_directory(), examples_machine());
  EXPECT_EQ(job.plan().shape_of({0}).terms.request.where, (model::SiteWish{.machine = "m"}));
  EXPECT_EQ(job.plan().shape_of({1}).terms.request.where,
            (model::SiteWish{.machine = "m", .gpu = "card"}));
  EXPECT_THAT(mistakes_of_keys("where: {gpu: card}"),
              ElementsAre(HasSubstr("where: 'gpu' selects GPUs, but the task requests no GPU")));
}

TEST(Where, IsToldWhatWouldBeRight) {
  EXPECT_THAT(mistakes_of_keys("where: {machin: a}"),
              ElementsAre(HasSubstr("where: unknown key 'machin' (did you mean 'machine'?)")));
  EXPECT_THAT(mistakes_of_keys("where: {rack: 7}"),
              ElementsAre(HasSubstr("where: unknown key 'rack'")));
  EXPECT_THAT(mistakes_of_keys("where: lab1"),
              ElementsAre(HasSubstr("where: 'lab1' must be the name of a machine or a GPU")));
  for (const char* const where : {"{}", "[lab1, lab2]", "null"}) {
    EXPECT_THAT(mistakes_of_keys(fmt::format("where: {}", where)),
                ElementsAre(HasSubstr("'where' must be names of machines or GPUs")))
        << where;
  }
  EXPECT_THAT(mistakes_of_keys("where: {machine: 'lab1,lab2'}"),
              ElementsAre(HasSubstr("'machine' must be a single pattern, without a comma")));
  EXPECT_THAT(mistakes_of_keys("where: {machine: ''}"),
              ElementsAre(HasSubstr("where: 'machine' must be a name or a pattern")));
  EXPECT_THAT(mistakes_of_keys("where: {machine: [a]}"),
              ElementsAre(HasSubstr("must be a single value")));
}

TEST(Where, IsRefusedAtItsLineWhereNoMachineIsCalledSo) {
  const std::string text =
      "groups:\n- name: g\n  where: {machine: 'lab*'}\n  tasks: [{id: t, command: x}]\n";
  EXPECT_THAT(mistakes_where(text, {machine_called("here"), machine_called("lab1")}), IsEmpty());
  EXPECT_THAT(mistakes_where(text, {machine_called("here"), machine_called("big1")}),
              ElementsAre("sweep.yaml:3:10: group 'g': task 't' can never run here: where: no "
                          "machine is called 'lab*'; the machines are here, big1"));
  EXPECT_THAT(mistakes_where(text, {}), IsEmpty()) << "nobody knows yet how they are called";
}

TEST(Where, IsNotThePlaceOfAnotherKeyThatDoesNotFitThere) {
  model::NamedMachine large = machine_called("big1");
  large.capacity.cpus = model::cpus(64);
  EXPECT_THAT(
      mistakes_where("groups:\n- name: g\n  where: {machine: 'lab*'}\n  cpus: 9\n  memory: 1GB\n"
                     "  tasks: [{id: t, command: x}]\n",
                     {machine_called("lab1"), large}),
      ElementsAre("sweep.yaml:4:9: group 'g': task 't' can never run here: fits on none of "
                  "lab1: needs 9 CPUs, lab1 has 4; request at most 4"));
}

TEST(Where, NamesAMachineThatKeepsMoreMemoryFreeThanItHasOnce) {
  model::NamedMachine small = machine_called("lab1");
  small.capacity.memory = gb(1);
  EXPECT_THAT(mistakes_where("config: {remain-limit: {memory: 3GB}}\n"
                             "groups: [{name: g, where: {machine: lab1}, memory: 2GB,\n"
                             "tasks: [{id: t, command: x}]}]\n",
                             {small, machine_called("lab2")}),
              ElementsAre(HasSubstr(
                  "sweep.yaml:2:52: group 'g': task 't' can never run here: fits on none of "
                  "lab1: needs 2 GB of memory, lab1 has ")));
}

TEST(Where, IsLookedAtOnEachMachineOfARun) {
  model::NamedMachine with_gpu = machine_called("lab2");
  with_gpu.capacity.gpus = {{.name = "NVIDIA H100", .memory = gb(80)}};
  const std::string text =
      "groups:\n- name: g\n  tasks: [{id: t, command: x, gpu-memory: 60GB, where: {gpu: h100}}]\n";
  EXPECT_THAT(mistakes_where(text, {machine_called("lab1"), with_gpu}), IsEmpty())
      << "the machine with the most GPUs has other ones";
  EXPECT_THAT(mistakes_where(text, {machine_called("lab1")}),
              ElementsAre(HasSubstr(
                  "where: no machine has a GPU called 'h100'; the only machine is lab1 (no "
                  "GPU)")));
}

}  // namespace
}  // namespace trainyard::job

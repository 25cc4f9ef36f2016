// `workers`: its values, the keys that exclude it, and the resulting task.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "job/job.h"
#include "job/term_text.h"
#include "job/test_job.h"
#include "model/launch.h"

namespace trainyard::job {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> mistakes_in(std::string_view keys) {
  return mistakes_of(fmt::format("groups:\n- name: g\n  tasks: [{{{}, command: x}}]\n", keys));
}

model::Launch task_of(std::string_view keys) {
  return job_of(fmt::format("groups: [{{name: g, tasks: [{{{}}}]}}]", keys))
      .launch({.task = {0}, .attempt = 1});
}

/// Without the program, which is where it was built.
std::vector<std::string> words_of(const model::Launch& launch) {
  return {launch.arguments.begin() + 1, launch.arguments.end()};
}

TEST(Workers, AreStartedByTrainyardItselfInTheOrderWritten) {
  const model::Launch launch =
      task_of("workers: {collector: 2, learner: 1}, command: [train, --fast]");
  EXPECT_THAT(words_of(launch),
              ElementsAre("parallel", "--workers", "3", "--roles", "collector,collector,learner",
                          "--", "train", "--fast"));
  EXPECT_EQ(launch.ranks, 0);
  EXPECT_EQ(launch.own_ranks, std::nullopt);
  EXPECT_THAT(words_of(task_of("workers: {learner: 1, collector: 2}, command: [x]")),
              Contains("learner,collector,collector"));
}

TEST(Workers, OfANumberHaveNoRole) {
  EXPECT_THAT(words_of(task_of("workers: 4, command: 'train -n 1'")),
              ElementsAre("parallel", "--workers", "4", "--", "/bin/bash", "-c", "train -n 1"));
}

TEST(Workers, OfAListOfOneWordHaveItReadByNoShell) {
  EXPECT_THAT(words_of(task_of("workers: 2, command: ['./my train; rm x']")),
              ElementsAre("parallel", "--workers", "2", "--", "/bin/sh", "-c", "exec \"$0\"",
                          "./my train; rm x"));
  EXPECT_THAT(words_of(task_of("workers: 2, command: [./train]")),
              ElementsAre("parallel", "--workers", "2", "--", "./train"));
}

TEST(Workers, MayBeAsManyAsTheMatrixSays) {
  const Job job = job_of(
      "groups: [{name: g, matrix: {n: [1, 3], team: ['a=1', 'a=2,b=1']}, tasks: [\n"
      "  {id: 'role-{n}-{team}', workers: {collector: '{n}', learner: 1}, command: [x]},\n"
      "  {id: 'team-{n}-{team}', workers: '{team}', command: [x]}]}]",
      in_job_directory());
  std::vector<std::string> shown;
  for (std::uint32_t task = 0; task < job.plan().tasks.size(); ++task) {
    shown.push_back(to_text(job.workers({task})));
    EXPECT_EQ(job.plan().shape_of({task}).terms.workers, job.workers({task}).count);
  }
  const std::string few = "1 of role collector, 1 of role learner";
  const std::string many = "3 of role collector, 1 of role learner";
  const std::string one = "1 of role a";
  const std::string team = "2 of role a, 1 of role b";
  EXPECT_THAT(shown, ElementsAre(few, one, few, team, many, one, many, team));
}

TEST(Workers, HaveACpuEachUnlessSomethingElseIsSaidAndTheirShareOfIt) {
  const auto given = [](std::string_view keys) {
    const Job job =
        job_of(fmt::format("groups: [{{tasks: [{{{}, command: x}}]}}]", keys), in_job_directory());
    return fmt::format("{} {}", job.plan().shape_of({0}).terms.request.cpus.milli,
                       job.launch({.task = {0}, .attempt = 1}).environment[8]);
  };
  EXPECT_EQ(given("workers: {collector: 2, learner: 1}"), "3000 OMP_NUM_THREADS=1");
  EXPECT_EQ(given("workers: 2, cpus: 4"), "4000 OMP_NUM_THREADS=2");
  EXPECT_EQ(given("workers: 3, cpus: 1"), "1000 OMP_NUM_THREADS=1");
}

TEST(Workers, AreAnotherTaskWhenTheirNumberRolesOrOrderIsEdited) {
  const auto print = [](std::string_view keys) {
    return job_of(fmt::format("groups: [{{tasks: [{{{} command: x}}]}}]", keys)).fingerprint({0});
  };
  const std::vector<std::uint64_t> all{print(""),
                                       print("workers: 3,"),
                                       print("workers: 2,"),
                                       print("workers: {a: 2, b: 1},"),
                                       print("workers: {b: 1, a: 2},"),
                                       print("ranks: 3,")};
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) EXPECT_NE(all[i], all[k]) << i << ' ' << k;
  }
  EXPECT_EQ(print("workers: {a: 2, b: 1},"), print("workers: 'a=2,b=1',"));
}

TEST(Workers, AreAtLeastOneAndNotMoreThanCanBe) {
  EXPECT_THAT(mistakes_in("workers: 1024, cpus: 1"), IsEmpty());
  EXPECT_THAT(mistakes_in("workers: 0"),
              ElementsAre("sweep.yaml:3:21: group 'g': task 1: workers: '0' is not a whole number "
                          "from 1 to 1024"));
  EXPECT_THAT(mistakes_in("workers: 1025"), ElementsAre(HasSubstr("'1025' is not a whole number")));
  EXPECT_THAT(mistakes_in("workers: two"), ElementsAre(HasSubstr("'two' is not a whole number")));
  EXPECT_THAT(
      mistakes_in("workers: {a: 1000, b: 25}"),
      ElementsAre(
          "sweep.yaml:3:21: group 'g': task 1: workers: at most 1024 are allowed in total"));
}

TEST(Workers, OfARoleAreToldAtItsNumber) {
  EXPECT_THAT(mistakes_of("groups:\n"
                          "- name: g\n"
                          "  tasks:\n"
                          "  - command: x\n"
                          "    workers:\n"
                          "      learner: 1\n"
                          "      collector: many\n"),
              ElementsAre("sweep.yaml:7:18: group 'g': task 1: workers: 'collector': 'many' is "
                          "not a whole number from 1 to 1024"));
  EXPECT_THAT(mistakes_in("workers: {a b: 1}"),
              ElementsAre(HasSubstr("workers: 'a b' is not a valid name; use 1 to 64 letters")));
  EXPECT_THAT(mistakes_in("workers: {node.3: 1}"),
              ElementsAre(HasSubstr("workers: 'node.3' is reserved: pipelines have the labels "
                                    "standalone, distributed, async and node.<number> anyway; use "
                                    "another name, such as 'learner'")));
  EXPECT_THAT(mistakes_in("workers: {'a,b': 1}"),
              ElementsAre(HasSubstr("has no number; write it as in 'collector=2'")));
  EXPECT_THAT(mistakes_in("workers: {a: [1]}"), ElementsAre(HasSubstr("task 1: 'a' must be")));
  EXPECT_THAT(mistakes_in("workers: [a, b]"),
              ElementsAre(HasSubstr("'workers' must be a number, or a number for each role")));
  EXPECT_THAT(mistakes_in("workers: {}"), ElementsAre(HasSubstr("'' is not a whole number")));
  EXPECT_THAT(mistakes_in("workers: 'a=1,a=2'"), ElementsAre(HasSubstr("duplicate role 'a'")));
  EXPECT_THAT(mistakes_in("workers: {a: '{n}'}"),
              ElementsAre(HasSubstr("workers: unknown placeholder '{n}'")));
  EXPECT_THAT(mistakes_in("worker: 2"),
              ElementsAre(HasSubstr("unknown key 'worker' (did you mean 'workers'?)")));
}

TEST(Workers, OfACombinationAreToldWithIt) {
  EXPECT_THAT(mistakes_of("groups: [{name: g, matrix: {n: [1, 0]}, tasks: [{id: 't-{n}', "
                          "workers: {a: '{n}'}, command: x}]}]"),
              ElementsAre(HasSubstr("workers: 'a': '0' is not a whole number from 1 to 1024 (in "
                                    "the combination n=0)")));
}

TEST(Workers, AreNoRanksAndAreNotPreloaded) {
  EXPECT_THAT(mistakes_in("workers: 2, ranks: 2"),
              ElementsAre("sweep.yaml:3:31: group 'g': ranks: cannot be combined with 'workers'"));
  EXPECT_THAT(mistakes_in("workers: 2, launcher: mpirun"),
              ElementsAre("sweep.yaml:3:34: group 'g': launcher: cannot be combined with "
                          "'workers', which trainyard starts itself"));
  EXPECT_THAT(mistakes_in("workers: 2, two-phase: true"),
              ElementsAre("sweep.yaml:3:35: group 'g': two-phase: one process waits for a device, "
                          "and no 'workers' do"));
  EXPECT_THAT(mistakes_in("workers: 2, two-phase: false"), testing::IsEmpty());
  EXPECT_THAT(mistakes_of("groups: [{name: g, preload: numpy, workers: 2,\n"
                          "  tasks: [{id: a, command: python3 x.py}]}]"),
              ElementsAre("sweep.yaml:1:45: group 'g': workers: a task with 'preload' is one "
                          "process"));
  // Once, and not for each cell.
  EXPECT_THAT(mistakes_of("groups: [{name: g, matrix: {n: [1, 2]}, ranks: 2, tasks: [{workers: "
                          "'{n}', command: x}]}]"),
              ElementsAre(HasSubstr("ranks: cannot be combined with 'workers'")));
}

}  // namespace
}  // namespace trainyard::job

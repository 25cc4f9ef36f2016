// The programs of a job that are searched for beforehand.
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "job/job.h"
#include "job/test_job.h"
#include "text/task_pattern.h"
#include "wire/agent.h"

namespace trainyard::job {
namespace {

using testing::ElementsAre;

std::vector<std::string> told(const Job& job) {
  std::vector<std::string> all;
  for (const ProgramOfTasks& each : job.programs()) {
    all.push_back(fmt::format("{}{} in {} for {}{}", each.program.name,
                              each.program.by_shell ? " of the shell" : "", each.program.directory,
                              each.first_task, each.comes_later ? ", later" : ""));
  }
  return all;
}

std::vector<std::string> scripts_of(const Job& job) {
  std::vector<std::string> all;
  for (const ProgramOfTasks& each : job.programs()) {
    for (const ScriptOfTasks& script : each.scripts) {
      all.push_back(fmt::format("{} {} for {}, {} in all{}", each.program.name, script.name,
                                script.first_task, script.tasks,
                                script.comes_later ? ", later" : ""));
    }
  }
  return all;
}

TEST(JobPrograms, AreThoseThatItsCommandsNameEachOnce) {
  const Job job = job_of(R"(
groups:
  - name: train
    matrix: {lr: [0.1, 0.2]}
    tasks:
      - {id: 'a{lr}', command: 'python3 train.py {lr}'}
      - {id: 'b{lr}', command: ['./train', '{lr}'], working-directory: sub}
)");
  EXPECT_THAT(told(job), ElementsAre("python3 of the shell in /job for train/a0.1",
                                     "./train in /job/sub for train/b0.1"));
}

TEST(JobPrograms, OfOtherTasksAreLeftOutWhereSomeAreNamed) {
  const Job job = job_of(R"(
groups:
  - name: train
    tasks:
      - {id: a, command: ./one}
      - {id: b, command: ./two}
)");
  const auto some = job.programs({"train/b"});
  ASSERT_EQ(some.size(), 1U);
  EXPECT_EQ(some.front().program.name, "./two");
  EXPECT_EQ(some.front().first_task, "train/b");
}

TEST(JobPrograms, AreNotGuessedWhereAShellHasMoreToDo) {
  const Job job = job_of("groups: [{tasks: [{command: 'cd sub && ./train | tee log'}]}]\n");
  EXPECT_THAT(told(job), ElementsAre(" of the shell in /job for group-1/group-1-1"));
}

TEST(JobPrograms, OfTasksThatWaitForOthersComeLater) {
  const Job job = job_of(R"(
groups:
  - {name: build, tasks: [{command: make}]}
  - {name: train, tasks: [{command: ./train}]}
)");
  EXPECT_THAT(told(job), ElementsAre("make of the shell in /job for build/build-1",
                                     "./train of the shell in /job for train/train-1, later"));
}

TEST(JobPrograms, OfTheRunItselfAreNotSought) {
  const Job job = job_of(R"(
name: sweep
groups:
  - name: train
    tasks:
      - {command: ['{run_dir}/train', fast]}
      - {command: 'python3 here.py', working-directory: '{task_dir}'}
)");
  EXPECT_THAT(told(job), ElementsAre("python3 of the shell in /job for train/train-2"));
}

TEST(JobPrograms, HaveTheScriptsThatTheCommandsNameEachOnce) {
  const Job job = job_of(R"(
groups:
  - name: train
    matrix: {lr: [0.1, 0.2]}
    tasks:
      - {id: 'a{lr}', command: [python3, train.py, '{lr}']}
      - {id: 'b{lr}', command: 'python3 src/eval-{lr}.py --all'}
      - {id: 'c{lr}', command: [/opt/bin/Rscript, plot.R, '{lr}']}
  - {name: late, tasks: [{id: d, command: [python3, train.py]}, {id: e, command: [python3, made.py]}]}
)");
  EXPECT_THAT(scripts_of(job), ElementsAre("python3 train.py for train/a0.1, 3 in all",
                                           "python3 made.py for late/e, 1 in all, later",
                                           "python3 src/eval-0.1.py for train/b0.1, 1 in all",
                                           "python3 src/eval-0.2.py for train/b0.2, 1 in all",
                                           "/opt/bin/Rscript plot.R for train/c0.1, 2 in all"));
}

TEST(JobPrograms, HaveNoScriptsThatAreNotPlainOrThatTheRunMakes) {
  const Job job = job_of(R"(
name: sweep
groups:
  - name: train
    tasks:
      - {command: [python3, -m, train.py]}
      - {command: [node, train.py]}
      - {command: [bash, -c, train.sh]}
      - {command: [./train.py, other.py]}
      - {command: 'cd src && sh train.sh'}
      - {command: 'LR=1 sh train.sh'}
      - {command: sh}
      - {command: [python3, '{run_dir}/made.py']}
      - {command: [python3, here.py], working-directory: '{task_dir}'}
)");
  EXPECT_EQ(scripts_of(job), std::vector<std::string>());
}

TEST(JobPrograms, AreFoundByTheVariablesThatTheirTasksHave) {
  const Job job = job_of(R"(
groups:
  - env: {PATH: /opt/bin, LR: 1}
    tasks: [{command: train}]
)");
  ASSERT_EQ(job.programs().size(), 1U);
  EXPECT_THAT(job.programs()[0].program.environment, ElementsAre("PATH=/opt/bin"));
}

TEST(JobPrograms, OfPreloadedTasksImportWhatTheirGroupSays) {
  const Job job = job_of(R"(
groups:
  - preload: [numpy, mydata]
    tasks: [{command: 'python3 -u src/train.py'}]
)");
  ASSERT_EQ(job.programs().size(), 1U);
  const wire::SoughtProgram sought = job.programs()[0].program;
  EXPECT_EQ(sought.name, "python3");
  EXPECT_THAT(sought.modules, ElementsAre("numpy", "mydata"));
  EXPECT_EQ(sought.import_directory, "/job/src");
}

TEST(JobPrograms, OfTasksThatAreLeftOutAreNotSought) {
  Job job = job_of("groups: [{name: a, tasks: [{command: one}, {command: two}]}]\n");
  ASSERT_TRUE(job.choose({text::TaskPattern::read("a/a-2").value()}).has_value());
  EXPECT_THAT(told(job), ElementsAre("two of the shell in /job for a/a-2"));
}

}  // namespace
}  // namespace trainyard::job

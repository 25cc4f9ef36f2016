// Some tasks of a job alone, with the tasks that they need.
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/result.h"
#include "job/job.h"
#include "job/test_job.h"
#include "model/ids.h"
#include "model/plan.h"
#include "text/task_pattern.h"

namespace trainyard::job {
namespace {

using ::testing::ElementsAre;

constexpr std::string_view kSweep = R"(
groups:
  - {name: prepare, tasks: [{id: get, command: x}, {id: unpack, command: x}]}
  - {name: train, needs: prepare, matrix: {lr: [1e-3, 0.1], seed: [0, 1]}, tasks: [{command: x}]}
  - {name: eval, needs: train, matrix: {lr: [1e-3, 0.1], seed: [0, 1]}, tasks: [{command: x}]}
  - {name: report, needs: eval, tasks: [{id: all, command: x}]}
  - {name: other, needs: [], tasks: [{id: all, command: x}]}
)";

/// The tasks that are to be run, or why there are none.
std::vector<std::string> run_of(const std::vector<std::string>& words) {
  Job job = job_of(kSweep);
  std::vector<text::TaskPattern> patterns;
  for (const std::string& word : words) patterns.push_back(text::TaskPattern::read(word).value());
  if (const Result<void> chosen = job.choose(patterns); !chosen) return {chosen.error().message};
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < job.plan().tasks.size(); ++i) {
    if (!job.plan().tasks[i].is_open()) continue;
    const std::string& group = job.plan().groups[job.group_of({i}).value].name;
    names.push_back(group + "/" + job.task_id({i}));
  }
  return names;
}

TEST(JobChoice, IsOfTheTasksThatAreMeantAndOfTheGroupsThatTheyNeed) {
  EXPECT_THAT(
      run_of({"lr=1e-3,seed=0"}),
      ElementsAre("prepare/get", "prepare/unpack", "train/lr=1e-3,seed=0", "eval/lr=1e-3,seed=0"))
      << "the groups that need them are not meant";
  EXPECT_THAT(run_of({"prepare/get", "train/lr=0.1"}),
              ElementsAre("prepare/get", "train/lr=0.1,seed=0", "train/lr=0.1,seed=1"))
      << "of a group of which some are chosen the others are not taken along";
  EXPECT_THAT(run_of({"other"}), ElementsAre("other/all"));
}

TEST(JobChoice, TakesAlongWhatIsNeededOverSeveralGroups) {
  const std::vector<std::string> names = run_of({"report"});
  EXPECT_EQ(names.size(), 2 + 4 + 4 + 1);
}

TEST(JobChoice, SaysWhatMeansNothing) {
  EXPECT_THAT(run_of({"lr=0.2"}),
              ElementsAre("the job has no task 'lr=0.2'; the values of lr are 1e-3, 0.1"));
  EXPECT_THAT(run_of({"fold=1"}),
              ElementsAre("the job has no task 'fold=1'; the matrix keys are lr, seed"));
  EXPECT_THAT(
      run_of({":failed"}),
      ElementsAre("--only takes tasks, and ':failed' is a state of tasks of a run; 'trainyard "
                  "retry' runs failed tasks again"));
  EXPECT_THAT(run_of({"other", "unpak"}),
              ElementsAre("the job has no task 'unpak' (did you mean 'unpack'?)"));
  EXPECT_THAT(run_of({"nothing"}),
              ElementsAre("the job has no task 'nothing'; tasks are named as in 'prepare/get'"));
}

TEST(JobChoice, TakesOfWhatIsNeededTaskByTaskNoMore) {
  constexpr std::string_view kCells = R"(
groups:
  - {name: prepare, tasks: [{id: get, command: x}]}
  - {name: train, needs: prepare, matrix: {lr: [1, 2], seed: [0, 1]}, tasks: [{command: x}]}
  - {name: eval, needs: [{group: train, match: matrix}], tasks: [{command: x}]}
)";
  Job job = job_of(kCells);
  ASSERT_TRUE(job.choose({text::TaskPattern::read("eval/lr=2,seed=1").value()}));
  std::vector<std::string> open;
  for (std::uint32_t i = 0; i < job.plan().tasks.size(); ++i) {
    if (job.plan().tasks[i].is_open()) open.push_back(job.task_id({i}));
  }
  EXPECT_THAT(open, ElementsAre("get", "lr=2,seed=1", "lr=2,seed=1"));
}

}  // namespace
}  // namespace trainyard::job

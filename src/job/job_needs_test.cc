// Groups whose tasks are matched with those of others by keys of the matrix.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "job/job.h"
#include "job/test_job.h"
#include "model/launch.h"
#include "model/terms.h"

namespace trainyard::job {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::string_view kTrain =
    "groups:\n"
    "  - {name: train, matrix: {lr: [1e-3, 0.1], seed: [0, 1]}, tasks: [{command: ./train}]}\n";

std::string after_train(std::string_view group) { return fmt::format("{}  - {}\n", kTrain, group); }

/// "eval/lr=0.1,seed=1 <- train/lr=0.1,seed=1"
std::vector<std::string> needs_of(const Job& job) {
  std::vector<std::string> lines;
  for (const model::TaskNeed& need : job.plan().task_needs) {
    lines.push_back(fmt::format("{} <- {}", job.task_id(need.task), job.task_id(need.needed)));
  }
  return lines;
}

TEST(Matching, InheritsTheMatrixAndNeedsTheTaskOfTheSameCell) {
  const Job job = job_of(
      after_train("{name: eval, needs: [{group: train, match: matrix}], tasks: [{command: x}]}"));
  EXPECT_THAT(needs_of(job),
              ElementsAre("lr=1e-3,seed=0 <- lr=1e-3,seed=0", "lr=1e-3,seed=1 <- lr=1e-3,seed=1",
                          "lr=0.1,seed=0 <- lr=0.1,seed=0", "lr=0.1,seed=1 <- lr=0.1,seed=1"));
  EXPECT_THAT(job.plan().groups[1].needs, IsEmpty());
  EXPECT_THAT(job.plan().groups[1].needs_by_task, ElementsAre(model::GroupIndex{0}));
}

TEST(Matching, BySomeKeysNeedsAllThatAgreeInThese) {
  const Job job =
      job_of(after_train("{name: mean, needs: {group: train, match: lr}, tasks: [{command: x}]}"));
  EXPECT_THAT(needs_of(job), ElementsAre("lr=1e-3 <- lr=1e-3,seed=0", "lr=1e-3 <- lr=1e-3,seed=1",
                                         "lr=0.1 <- lr=0.1,seed=0", "lr=0.1 <- lr=0.1,seed=1"));
}

TEST(Matching, AddsWhatTheGroupsOwnMatrixHasMore) {
  const Job job =
      job_of(after_train("{name: eval, needs: [{group: train, match: [lr]}], "
                         "matrix: {data: [a, b]}, tasks: [{command: x}]}"));
  EXPECT_THAT(ids_of(job),
              ElementsAre("lr=1e-3,seed=0", "lr=1e-3,seed=1", "lr=0.1,seed=0", "lr=0.1,seed=1",
                          "lr=1e-3,data=a", "lr=1e-3,data=b", "lr=0.1,data=a", "lr=0.1,data=b"));
  const Job narrow =
      job_of(after_train("{name: eval, needs: [{group: train, match: matrix}], "
                         "matrix: {lr: [0.1]}, tasks: [{command: x}]}"));
  EXPECT_THAT(needs_of(narrow),
              ElementsAre("lr=0.1,seed=0 <- lr=0.1,seed=0", "lr=0.1,seed=1 <- lr=0.1,seed=1"));
}

TEST(Matching, WithSeveralGroupsJoinsThem) {
  const Job job =
      job_of(after_train("{name: eval, needs: [{group: train, match: matrix}], tasks: [{id: "
                         "'e{lr}{seed}', command: x}]}\n"
                         "  - {name: both, needs: [{group: train, match: matrix}, {group: eval, "
                         "match: [lr, seed]}], tasks: [{command: x}]}"));
  EXPECT_EQ(needs_of(job).size(), 12U);
  EXPECT_THAT(needs_of(job), Contains("lr=0.1,seed=1 <- lr=0.1,seed=1"));
  EXPECT_THAT(needs_of(job), Contains("lr=0.1,seed=1 <- e0.11"));
}

TEST(Matching, SaysWhatIsWrong) {
  EXPECT_THAT(mistakes_of(after_train(
                  "{name: eval, needs: [{group: train, match: [sed]}], tasks: [{command: x}]}")),
              ElementsAre("sweep.yaml:3:49: group 'eval': match: the matrix of group 'train' has "
                          "no 'sed' (did you mean 'seed'?)"));
  EXPECT_THAT(mistakes_of(after_train(
                  "{name: eval, needs: [{group: tran, match: matrix}], tasks: [{command: x}]}")),
              ElementsAre("sweep.yaml:3:34: group 'eval': match: no group 'tran' before this one"));
  EXPECT_THAT(
      mistakes_of("groups:\n  - {name: a, tasks: [{command: x}]}\n"
                  "  - {name: b, needs: [{group: a, match: matrix}], tasks: [{command: x}]}\n"),
      ElementsAre("sweep.yaml:3:41: group 'b': match: group 'a' has no matrix; 'needs: [a]' "
                  "waits for all of it"));
  EXPECT_THAT(mistakes_of(after_train("{name: eval, needs: [{group: train, match: matrix}], "
                                      "matrix: {lr: [7]}, tasks: [{command: x}]}")),
              ElementsAre("sweep.yaml:3:66: group 'eval': the matrix has the combination lr=7, "
                          "which no task that it needs has"));
  EXPECT_THAT(
      mistakes_of(after_train("{name: eval, try-first: 1, needs: [{group: train, match: "
                              "matrix}], tasks: [{command: x}]}")),
      ElementsAre("sweep.yaml:3:5: group 'eval': try-first: cannot be combined with 'match': "
                  "each task starts when the tasks that it needs have finished"));
  EXPECT_THAT(
      mistakes_of(
          after_train("{name: eval, needs: [{group: train, mach: lr}], tasks: [{command: x}]}")),
      ElementsAre("sweep.yaml:3:41: group 'eval': unknown key 'mach' (did you mean 'match'?)"));
}

TEST(Matching, OfACircleIsAMistakeToo) {
  EXPECT_THAT(
      mistakes_of("groups:\n  - {name: a, needs: [b], matrix: {k: [1]}, tasks: [{command: x}]}\n"
                  "  - {name: b, needs: [{group: a, match: matrix}], tasks: [{command: x}]}\n"),
      ElementsAre("sweep.yaml:2:23: group 'a': cycle in 'needs': 'a' needs 'b', 'b' needs 'a'"));
}

TEST(NeedsValues, AreTheDirectoriesAndResultsOfWhatATaskNeeds) {
  const Job job =
      job_of(after_train("{name: eval, needs: [{group: train, match: matrix}], tasks: [{command: "
                         "[./eval, '{needs.train.dir}', '--acc={needs.train.result.acc}']}]}\n"
                         "  - {name: mean, needs: [{group: eval, match: lr}], tasks: [{command: "
                         "[./mean, '{needs.eval.dirs}', 'all: {needs.eval.dirs}']}]}"));
  const ResultOf results = [](const std::string& group, const std::string& id) {
    return fmt::format(R"({{"acc": 0.5, "of": "{}/{}"}})", group, id);
  };
  const model::Launch eval = job.launch({.task = {4}}, {}, results);
  EXPECT_THAT(eval.arguments,
              ElementsAre("./eval", "/job/runs/sweep/train/lr=1e-3,seed=0", "--acc=0.5"));
  EXPECT_EQ(eval.cannot_start, "");
  const model::Launch mean = job.launch({.task = {8}}, {}, results);
  EXPECT_THAT(mean.arguments, ElementsAre("./mean", "/job/runs/sweep/eval/lr=1e-3,seed=0",
                                          "/job/runs/sweep/eval/lr=1e-3,seed=1",
                                          "all: /job/runs/sweep/eval/lr=1e-3,seed=0 "
                                          "/job/runs/sweep/eval/lr=1e-3,seed=1"));
}

TEST(NeedsValues, InTheShellAreVariablesAndItsWords) {
  const Job job =
      job_of(after_train("{name: mean, needs: [train], tasks: [{command: 'mean {needs.train.dirs} "
                         "\"{needs.train.dirs}\"'}]}"));
  const model::Launch launch = job.launch({.task = {4}});
  ASSERT_EQ(launch.arguments.size(), 8U);
  EXPECT_EQ(launch.arguments[2], "mean \"$@\" \"${TRAINYARD_V1}\"");
  EXPECT_EQ(launch.arguments[3], "bash");
  EXPECT_EQ(launch.arguments[7], "/job/runs/sweep/train/lr=0.1,seed=1");
}

TEST(NeedsValues, ThatAreNotThereKeepATaskFromStarting) {
  const Job job =
      job_of(after_train("{name: eval, needs: [{group: train, match: matrix}], tasks: [{command: "
                         "'x {needs.train.result.acc}'}]}"));
  for (const std::string& result :
       {std::string(R"({"loss": 1})"), std::string("[1]"), std::string()}) {
    const model::Launch launch =
        job.launch({.task = {4}}, {}, [&result](const auto&, const auto&) { return result; });
    EXPECT_EQ(launch.cannot_start,
              "'{needs.train.result.acc}' has no value: train/lr=1e-3,seed=0 left no 'acc' in its "
              "result");
  }
}

TEST(NeedsValues, OfOneTaskAreAMistakeWhereSeveralAreNeeded) {
  EXPECT_THAT(
      mistakes_of(
          after_train("{name: eval, needs: [train], tasks: [{command: 'x {needs.train.dir}'}]}")),
      ElementsAre("sweep.yaml:3:52: group 'eval': '{needs.train.dir}' is of one task, and 4 of "
                  "group 'train' are needed; '{needs.train.dirs}' are the directories of all"));
  EXPECT_THAT(mistakes_of(after_train(
                  "{name: eval, needs: [train], tasks: [{command: 'x {needs.train.dri}'}]}")),
              ElementsAre("sweep.yaml:3:52: group 'eval': task 1: command: unknown placeholder "
                          "'{needs.train.dri}' (did you mean '{needs.train.dir}'?)"));
}

TEST(NeedsValues, AreNoWordsWhereTheShellHasOthersByThen) {
  for (const char* const command :
       {"f() { x {needs.train.dirs}; }; f", "set -- a; x {needs.train.dirs}"}) {
    EXPECT_THAT(
        mistakes_of(after_train(
            fmt::format("{{name: eval, needs: [train], tasks: [{{command: '{}'}}]}}", command))),
        ElementsAre(HasSubstr("group 'eval': '{needs.train.dirs}' is the shell's \"$@\", which "
                              "differs in a function and after 'set --' or 'shift'; write the "
                              "command into a script that gets the directories as arguments")));
  }
  EXPECT_EQ(mistakes_of(after_train("{name: eval, needs: [train], tasks: [{command: 'set -e; x "
                                    "{needs.train.dirs}'}]}")),
            std::vector<std::string>{});
}

TEST(NeedsValues, DoNotChangeWhatATaskIs) {
  const std::string text = after_train(
      "{name: eval, needs: [{group: train, match: matrix}], tasks: [{command: 'x "
      "{needs.train.dir}'}]}");
  LoadOptions moved = in_job_directory();
  moved.run_directory = "/elsewhere";
  EXPECT_EQ(job_of(text).fingerprint({4}), job_of(text, moved).fingerprint({4}));
}

TEST(RunIf, IsOfGroupsAndTasks) {
  const Job job = job_of(
      after_train("{name: last, if: always(), tasks: [{command: x}, {if: failure, command: x}]}"));
  EXPECT_EQ(job.plan().shape_of({4}).terms.run_if, model::RunIf::Always);
  EXPECT_EQ(job.plan().shape_of({5}).terms.run_if, model::RunIf::Failure);
  EXPECT_THAT(mistakes_of(after_train("{name: last, if: allways(), tasks: [{command: x}]}")),
              ElementsAre("sweep.yaml:3:22: group 'last': if: must be success, failure or "
                          "always, not 'allways()' (did you mean 'always'?)"));
  EXPECT_THAT(
      mistakes_of("groups:\n  - {name: a, if: failure(), tasks: [{command: x}]}\n"),
      ElementsAre("sweep.yaml:2:19: group 'a': if: failure() cannot be used without 'needs'"));
  EXPECT_THAT(
      mistakes_of("groups:\n  - {name: a, if: always(), tasks: [{command: x}, {command: y, if: "
                  "failure}]}\n"),
      ElementsAre("sweep.yaml:2:68: group 'a': if: failure() cannot be used without 'needs'"));
}

}  // namespace
}  // namespace trainyard::job

// A task is retried after the tasks it needs, and a task that would be skipped again is not
// retried.
#include "app/retry_needs.h"

#include <cstdint>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/status.h"

namespace trainyard::app {
namespace {

using model::Verdict;
using ::testing::ElementsAre;

journal::GroupRow group(std::uint32_t index, std::vector<std::string> needs = {}) {
  return {.index = {index},
          .name = std::to_string(index),
          .needs = std::move(needs),
          .needs_tasks = {},
          .name_in_file = std::to_string(index)};
}

/// The only task of the group of the same number.
journal::TaskRow task(std::uint32_t index, Verdict verdict) {
  journal::TaskRow row;
  row.index = {index};
  row.group = {index};
  row.standing.verdict = verdict;
  return row;
}

/// The numbers of the tasks that are retried with `tasks`, in order.
std::vector<std::uint32_t> cascade(const RetryNeeds& needs, std::vector<journal::TaskRow> tasks) {
  needs.add_cascade(tasks);
  needs.put_needed_first(tasks);
  std::vector<std::uint32_t> numbers;
  for (const journal::TaskRow& row : tasks) numbers.push_back(row.index.value);
  return numbers;
}

TEST(RetryNeeds, TakesAlongTheSkippedTasksThatAFinishedOneNeeds) {
  const journal::TaskRow report = task(3, Verdict::Finished);
  const RetryNeeds needs({group(0), group(1, {"0"}), group(2, {"1"}), group(3, {"0", "2"})}, {},
                         {task(1, Verdict::Skipped), task(2, Verdict::Skipped), report});
  EXPECT_THAT(cascade(needs, {report}), ElementsAre(1, 2, 3));
}

TEST(RetryNeeds, LeavesSkippedTasksThatWouldBeSkippedAgain) {
  const journal::TaskRow report = task(3, Verdict::Finished);
  for (const Verdict verdict : {Verdict::Failed, Verdict::Stopped}) {
    const RetryNeeds needs(
        {group(0), group(1, {"0"}), group(2, {"1"}), group(3, {"2"})}, {},
        {task(0, verdict), task(1, Verdict::Skipped), task(2, Verdict::Skipped), report});
    EXPECT_THAT(cascade(needs, {report}), ElementsAre(3));
  }
}

TEST(RetryNeeds, TakesAlongOnlyThoseOfAGroupThatATaskNeedsItself) {
  journal::TaskRow skipped = task(0, Verdict::Skipped);
  journal::TaskRow other = task(1, Verdict::Skipped);
  other.group = skipped.group;
  const journal::TaskRow report = task(2, Verdict::Finished);
  const RetryNeeds needs({group(0), group(2)}, {{.task = {2}, .needed = {0}}},
                         {skipped, other, report});
  EXPECT_THAT(cascade(needs, {report}), ElementsAre(0, 2));
}

/// The error of a retry of these tasks; empty: they are retried.
std::string refusal(const RetryNeeds& needs, const std::vector<journal::TaskRow>& tasks,
                    bool needs_success = true) {
  const Result<void> checked =
      needs.check(tasks, "runs/job", [needs_success](const auto&) { return needs_success; });
  return checked ? std::string() : checked.error().message;
}

/// The tasks g/0, g/1 and so on, each in the group of its number.
std::vector<journal::TaskRow> tasks_with(const std::vector<Verdict>& verdicts) {
  std::vector<journal::TaskRow> rows;
  for (const Verdict verdict : verdicts) {
    rows.push_back(task(static_cast<std::uint32_t>(rows.size()), verdict));
    rows.back().group_name = "g";
    rows.back().id = std::to_string(rows.size() - 1);
  }
  return rows;
}

// The error is the same with --cascade, which does not retry what failed before a named task.
TEST(RetryNeeds, RefusesASkippedTaskWithACureThatWorksWithAndWithoutCascade) {
  const std::vector<journal::TaskRow> rows = tasks_with({Verdict::Failed, Verdict::Skipped});
  const RetryNeeds needs({group(0), group(1, {"0"})}, {}, rows);
  EXPECT_EQ(refusal(needs, {rows[1]}),
            "g/1 needs group '0', which has not succeeded; to run both, type: trainyard retry "
            "runs/job 0 g/1");
  EXPECT_EQ(refusal(needs, rows), "");
}

TEST(RetryNeeds, RefusesATaskThatNeedsTheSuccessOfOneThatIsNotRetried) {
  for (const Verdict needed : {Verdict::Stopped, Verdict::Failed, Verdict::Skipped}) {
    for (const Verdict verdict : {Verdict::Stopped, Verdict::Failed}) {
      const std::vector<journal::TaskRow> rows = tasks_with({needed, verdict});
      const RetryNeeds by_group({group(0), group(1, {"0"})}, {}, rows);
      EXPECT_EQ(refusal(by_group, {rows[1]}),
                "g/1 needs group '0', which has not succeeded; to run both, type: trainyard retry "
                "runs/job 0 g/1");
      EXPECT_EQ(refusal(by_group, rows), "");
      const RetryNeeds by_task({group(0), group(1)}, {{.task = {1}, .needed = {0}}}, rows);
      EXPECT_EQ(refusal(by_task, {rows[1]}),
                "g/1 needs 'g/0', which has not succeeded; to run both, type: trainyard retry "
                "runs/job g/0 g/1");
      EXPECT_EQ(refusal(by_task, rows), "");
    }
  }
}

TEST(RetryNeeds, RetriesATaskThatRunsAlsoAfterAFailure) {
  const std::vector<journal::TaskRow> rows = tasks_with({Verdict::Stopped, Verdict::Stopped});
  const RetryNeeds by_group({group(0), group(1, {"0"})}, {}, rows);
  EXPECT_EQ(refusal(by_group, {rows[1]}, false), "");
  const RetryNeeds by_task({group(0), group(1)}, {{.task = {1}, .needed = {0}}}, rows);
  EXPECT_EQ(refusal(by_task, {rows[1]}, false), "");
}

TEST(RetryNeeds, RetriesATaskThatRunsAlsoAfterAFailureAndWasSkippedWithItsGroup) {
  std::vector<journal::TaskRow> rows = tasks_with({Verdict::Failed, Verdict::Skipped});
  rows[1].with_group = true;
  const RetryNeeds needs({group(0), group(1, {"0"})}, {}, rows);
  EXPECT_EQ(refusal(needs, {rows[1]}, false), "");
  EXPECT_EQ(refusal(needs, {rows[1]}, true),
            "g/1 needs group '0', which has not succeeded; to run both, type: trainyard retry "
            "runs/job 0 g/1");
}

TEST(RetryNeeds, NamesAllThatASkippedTaskNeedsInOneCommandThatWorks) {
  const std::vector<journal::TaskRow> rows =
      tasks_with({Verdict::Failed, Verdict::Skipped, Verdict::Skipped});
  const RetryNeeds needs({group(0), group(1, {"0"}), group(2, {"1"})}, {}, rows);
  const std::string cure = "; to run all, type: trainyard retry runs/job 0 1 g/2";
  EXPECT_EQ(refusal(needs, {rows[2]}),
            "g/2 needs group '0' and group '1', which have not succeeded" + cure);
  EXPECT_EQ(refusal(needs, {rows[0], rows[2]}),
            "g/2 needs group '1', which has not succeeded" + cure)
      << "the command keeps the tasks that were named";
  EXPECT_EQ(refusal(needs, rows), "");
}

TEST(RetryNeeds, NamesAllRefusedTasksInTheCommand) {
  std::vector<journal::TaskRow> rows =
      tasks_with({Verdict::Failed, Verdict::Skipped, Verdict::Skipped});
  rows[2].group = rows[1].group;
  const RetryNeeds needs({group(0), group(1, {"0"})}, {}, rows);
  EXPECT_EQ(refusal(needs, {rows[1], rows[2]}),
            "g/1 and 1 more need group '0', which has not succeeded; to run all, type: trainyard "
            "retry runs/job 0 g/1 g/2");
}

TEST(RetryNeeds, NamesAFailedTaskThatATaskNotSelectedNeedsThroughAnother) {
  const std::vector<journal::TaskRow> rows =
      tasks_with({Verdict::Failed, Verdict::NotSelected, Verdict::NotSelected});
  std::vector<journal::GroupRow> groups{group(0), group(1, {"0"}), group(2, {"1"})};
  for (journal::GroupRow& each : groups) each.tasks = 1;
  const RetryNeeds needs(groups, {}, rows);
  EXPECT_EQ(refusal(needs, {rows[2]}),
            "g/2 needs group '0' and group '1', which have not succeeded; to run all, type: "
            "trainyard retry runs/job 0 1 g/2");
}

TEST(RetryNeeds, LeavesATaskNotSelectedThatAFailedOneWasBegunWithout) {
  const std::vector<journal::TaskRow> rows =
      tasks_with({Verdict::NotSelected, Verdict::Failed, Verdict::Skipped});
  std::vector<journal::GroupRow> groups{group(0), group(1, {"0"}), group(2, {"1"})};
  for (journal::GroupRow& each : groups) each.tasks = 1;
  const RetryNeeds needs(groups, {}, rows);
  EXPECT_EQ(refusal(needs, {rows[2]}),
            "g/2 needs group '1', which has not succeeded; to run both, type: trainyard retry "
            "runs/job 1 g/2");
}

TEST(RetryNeeds, RefusesATaskThatNeedsOneNotSelectedEitherAndRetriesBoth) {
  journal::TaskRow eval = task(1, Verdict::NotSelected);
  eval.group_name = "eval";
  eval.id = "all";
  journal::TaskRow train = task(0, Verdict::NotSelected);
  train.group_name = "train";
  train.id = "lr=1 e";
  const RetryNeeds by_task({group(0), group(1)}, {{.task = {1}, .needed = {0}}}, {train, eval});
  EXPECT_EQ(refusal(by_task, {eval}),
            "eval/all needs 'train/lr=1 e', which has not succeeded; to run both, type: trainyard "
            "retry runs/job 'train/lr=1 e' eval/all");
  journal::GroupRow whole = group(0);
  whole.tasks = 1;
  const RetryNeeds by_group({whole, group(1, {"0"})}, {}, {train, eval});
  EXPECT_EQ(refusal(by_group, {eval}),
            "eval/all needs group '0', which has not succeeded; to run both, type: trainyard retry "
            "runs/job 0 eval/all");
  EXPECT_EQ(refusal(by_group, {train, eval}), "");
}

TEST(RetryNeeds, NamesAllTasksNotSelectedThatATaskNeedsInOneCommandThatWorks) {
  const std::vector<journal::TaskRow> rows = tasks_with(
      {Verdict::NotSelected, Verdict::NotSelected, Verdict::NotSelected, Verdict::NotSelected});
  std::vector<journal::GroupRow> groups{group(0), group(1, {"0"}), group(2), group(3, {"1", "2"})};
  for (journal::GroupRow& each : groups) each.tasks = 1;
  const RetryNeeds needs(groups, {}, rows);
  const std::string cure = "; to run all, type: trainyard retry runs/job 0 1 2 g/3";
  EXPECT_EQ(refusal(needs, {rows[3]}),
            "g/3 needs group '0', group '1' and group '2', which have not succeeded" + cure);
  EXPECT_EQ(refusal(needs, {rows[0], rows[1], rows[3]}),
            "g/3 needs group '2', which has not succeeded" + cure)
      << "the command keeps the tasks that were named";
  EXPECT_EQ(refusal(needs, rows), "");
}

TEST(RetryNeeds, PutsAGroupBehindTheOneThatItNeedsAlsoWhereThatIsLaterInTheFile) {
  const RetryNeeds needs(
      {group(0, {"2"}), group(1), group(2)}, {},
      {task(0, Verdict::Skipped), task(1, Verdict::Failed), task(2, Verdict::Failed)});
  EXPECT_THAT(cascade(needs, {task(1, Verdict::Failed), task(2, Verdict::Failed)}),
              ElementsAre(1, 2, 0));
}

}  // namespace
}  // namespace trainyard::app

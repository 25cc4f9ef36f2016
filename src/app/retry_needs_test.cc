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

// The error is the same with --cascade, which does not retry what failed before a named task.
TEST(RetryNeeds, RefusesASkippedTaskWithACureThatWorksWithAndWithoutCascade) {
  journal::TaskRow skipped = task(1, Verdict::Skipped);
  skipped.group_name = "eval";
  skipped.id = "all";
  const RetryNeeds needs({group(0), group(1, {"0"})}, {}, {task(0, Verdict::Failed), skipped});
  const Result<void> checked = needs.check({skipped}, "runs/job");
  ASSERT_FALSE(checked.has_value());
  EXPECT_EQ(checked.error().message,
            "eval/all would only be skipped again: it needs group '0'; to retry that and all tasks "
            "that were skipped because of it, type: trainyard retry runs/job 0 --cascade");
}

TEST(RetryNeeds, RefusesATaskThatNeedsOneNotSelectedEitherAndRetriesBoth) {
  journal::TaskRow eval = task(1, Verdict::NotSelected);
  eval.group_name = "eval";
  eval.id = "all";
  journal::TaskRow train = task(0, Verdict::NotSelected);
  train.group_name = "train";
  train.id = "lr=1 e";
  const RetryNeeds by_task({group(0), group(1)}, {{.task = {1}, .needed = {0}}}, {train, eval});
  Result<void> checked = by_task.check({eval}, "runs/job");
  ASSERT_FALSE(checked.has_value());
  EXPECT_EQ(checked.error().message,
            "eval/all needs 'train/lr=1 e', which was not selected either; to run both, type: "
            "trainyard retry runs/job 'train/lr=1 e' eval/all");
  journal::GroupRow whole = group(0);
  whole.tasks = 1;
  const RetryNeeds by_group({whole, group(1, {"0"})}, {}, {train, eval});
  checked = by_group.check({eval}, "runs/job");
  ASSERT_FALSE(checked.has_value());
  EXPECT_EQ(checked.error().message,
            "eval/all needs group '0', which was not selected either; to run both, type: trainyard "
            "retry runs/job 0 eval/all");
  EXPECT_TRUE(by_group.check({train, eval}, "runs/job").has_value());
}

TEST(RetryNeeds, NamesAllTasksNotSelectedThatATaskNeedsInOneCommandThatWorks) {
  std::vector<journal::TaskRow> rows;
  for (const std::uint32_t index : {0U, 1U, 2U, 3U}) {
    journal::TaskRow row = task(index, Verdict::NotSelected);
    row.group_name = "g";
    row.id = std::to_string(index);
    rows.push_back(std::move(row));
  }
  std::vector<journal::GroupRow> groups{group(0), group(1, {"0"}), group(2), group(3, {"1", "2"})};
  for (journal::GroupRow& each : groups) each.tasks = 1;
  const std::string cure = ", type: trainyard retry runs/job 0 1 2 g/3";
  const RetryNeeds needs(groups, {}, rows);
  Result<void> checked = needs.check({rows[3]}, "runs/job");
  ASSERT_FALSE(checked.has_value());
  EXPECT_EQ(checked.error().message,
            "g/3 needs group '0', group '1' and group '2', which were not selected either; to run "
            "all" +
                cure);
  checked = needs.check({rows[0], rows[1], rows[3]}, "runs/job");
  ASSERT_FALSE(checked.has_value());
  EXPECT_EQ(checked.error().message,
            "g/3 needs group '2', which was not selected either; to run all" + cure)
      << "the command keeps the tasks that were named";
  EXPECT_TRUE(needs.check(rows, "runs/job").has_value());
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

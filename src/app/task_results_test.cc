#include "app/task_results.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/test_run_facts.h"

namespace trainyard::app {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TasksOfRun run_1() {
  return {{.run = "/here/runs/a", .name = "run 1 ('runs/a')", .shown = "runs/a", .number = 1}};
}

TasksOfRun run_2() {
  return {{.run = "/here/runs/b", .name = "run 2 ('runs/b')", .shown = "runs/b", .number = 2}};
}

journal::TaskRow task_with_result(const std::string& id, const std::string& result) {
  journal::TaskRow row = test_task("train", id);
  row.directory = "train/" + id;
  row.result = result;
  return row;
}

/// Two rates with two seeds each, in one run.
TaskResults results_of_sweep() {
  TaskResults results;
  results.add_run(run_1());
  results.add_task(task_with_result("lr=1e-3,seed=0", R"({"acc": 0.4})"));
  results.add_task(task_with_result("lr=1e-3,seed=1", R"({"acc": 0.5})"));
  results.add_task(task_with_result("lr=0.01,seed=0", R"({"acc": 0.4})"));
  results.add_task(task_with_result("lr=0.01,seed=1", R"({"acc": 0.8})"));
  return results;
}

ResultsOutcome outcome_of(TaskResults results, const ResultsRequest& request = {}) {
  return std::move(results).outcome(request, TestFacts({})).value();
}

std::string error_of(TaskResults results, const ResultsRequest& request) {
  return std::move(results).outcome(request, TestFacts({})).error().message;
}

/// The cells of the first column.
std::vector<std::string> first_cells(const ResultsOutcome& outcome) {
  std::vector<std::string> cells;
  for (const auto& row : outcome.table.rows) cells.push_back(row.front().text);
  return cells;
}

/// The formats for programs.
std::vector<ResultsRequest> requests_of_programs() {
  return {{.csv = true}, {.markdown = true}, {.json = true}};
}

/// Empty if the request is right.
std::string wrong_results(const ResultsRequest& request) {
  const Result<void> fits = check_results_request(request);
  return fits ? std::string() : fits.error().message;
}

TEST(ResultsRequest, SortingNeedsAColumn) {
  EXPECT_EQ(wrong_results({.sort = ""}),
            "--sort needs a column: --sort -acc sorts by 'acc', largest first");
  EXPECT_EQ(wrong_results({.sort = "-acc"}), "");
}

TEST(ResultsRequest, APivotNeedsTwoDifferentKeys) {
  const std::string wrong =
      "--pivot needs two different keys, for rows and columns: --pivot lr,batch";
  EXPECT_EQ(wrong_results({.pivot = {"lr"}}), wrong);
  EXPECT_EQ(wrong_results({.pivot = {"lr", "batch", "seed"}}), wrong);
  EXPECT_EQ(wrong_results({.pivot = {"lr", "lr"}}), wrong);
  EXPECT_EQ(wrong_results({.pivot = {"lr", "batch"}}), "");
}

TEST(ResultsRequest, APivotIsNotCombinedWithOtherAverages) {
  EXPECT_EQ(wrong_results({.over = {"seed"}, .pivot = {"lr", "batch"}}),
            "--over cannot be combined with --pivot, which averages over all keys that are neither "
            "rows nor columns");
  EXPECT_EQ(wrong_results({.over = {"seed"}, .sort = "acc"}), "");
}

TEST(TaskResults, AreTheTasksThatMeetAllConditions) {
  const ResultsOutcome outcome =
      outcome_of(results_of_sweep(), {.where = {"seed=1", "acc>=0.5", "lr>0.005"}});
  EXPECT_THAT(first_cells(outcome), ElementsAre("0.01"));
  EXPECT_EQ(outcome.no_match, "");
}

TEST(TaskResults, ConditionsThatNoTaskMeetsAreShownWithTheNumbersOfAllTasks) {
  for (ResultsRequest request : {ResultsRequest{}, ResultsRequest{.over = {"seed"}},
                                 ResultsRequest{.pivot = {"lr", "seed"}}}) {
    request.where = {"seed=7", "acc>0.1", "status=finished"};
    EXPECT_EQ(outcome_of(results_of_sweep(), request).no_match,
              "no task matches 'seed=7', 'acc>0.1' and 'status=finished': seed is 0 to 1; acc is "
              "0.4 to 0.8, shown as a percentage");
  }
  EXPECT_EQ(outcome_of(results_of_sweep(), {.where = {"status=oom"}}).no_match,
            "no task matches 'status=oom'");
}

TEST(TaskResults, AProgramReadsAnEmptyTableIfNoTaskMeetsTheConditions) {
  for (ResultsRequest request : requests_of_programs()) {
    request.where = {"seed=7"};
    const ResultsOutcome outcome = outcome_of(results_of_sweep(), request);
    EXPECT_EQ(outcome.no_match, "");
    EXPECT_THAT(outcome.table.rows, IsEmpty());
    EXPECT_THAT(outcome.table.columns, SizeIs(5)) << "lr, seed, status, time, acc";
  }
}

TEST(TaskResults, EachRunWithoutASelectedTaskIsNamed) {
  const auto none = [] {
    TaskResults results;
    for (TasksOfRun run : {run_1(), run_2()}) {
      run.states = {report::TaskState::Running};
      results.add_run(run);
    }
    return results;
  };
  const std::string lines =
      "no task of 'runs/a' is :running\n"
      "no task of 'runs/b' is :running\n";
  EXPECT_EQ(outcome_of(none()).no_task, lines);
  EXPECT_EQ(outcome_of(none(), {.where = {"nonsense"}, .sort = "nonsense"}).no_task, lines);
  for (const ResultsRequest& request : requests_of_programs()) {
    EXPECT_EQ(outcome_of(none(), request).no_task, "");
  }
}

TEST(TaskResults, AveragesAreSorted) {
  EXPECT_THAT(first_cells(outcome_of(results_of_sweep(), {.over = {"seed"}, .sort = "-acc"})),
              ElementsAre("0.01", "1e-3"));
  EXPECT_THAT(first_cells(outcome_of(results_of_sweep(), {.over = {"seed"}, .sort = "acc"})),
              ElementsAre("1e-3", "0.01"));
}

TEST(TaskResults, APivotShowsTheRequestedField) {
  TaskResults results;
  results.add_run(run_1());
  results.add_task(task_with_result("lr=1,seed=0", R"({"acc": 0.4, "loss": 3})"));
  const ResultsOutcome outcome =
      outcome_of(std::move(results), {.pivot = {"lr", "seed"}, .show = "loss"});
  ASSERT_THAT(outcome.table.rows, SizeIs(1));
  ASSERT_THAT(outcome.table.rows[0], SizeIs(2));
  EXPECT_EQ(outcome.table.rows[0][1].number, 3);
}

TEST(TaskResults, ErrorsNameTheRunOfATableOfOneRun) {
  const std::string column = "column 'ac' not found (did you mean 'acc'?)";
  for (const ResultsRequest& request :
       {ResultsRequest{.where = {"ac>1"}}, ResultsRequest{.sort = "ac"}}) {
    EXPECT_EQ(error_of(results_of_sweep(), request), "run 1 ('runs/a'): " + column);
    TaskResults two = results_of_sweep();
    two.add_run(run_2());
    EXPECT_EQ(error_of(std::move(two), request), column);
  }
}

TEST(TaskResults, FinishedTasksOfARunThatMustRunAgainAreOutOfDate) {
  TaskResults results;
  results.add_run(run_2(), {1}, "'trainyard retry 2 --cascade' runs it again");
  results.add_task(task_with_result("lr=1", R"({"acc": 1})"));
  journal::TaskRow running = task_with_result("lr=2", "");
  running.standing = {.status = Status::Training};
  results.add_task(running);
  results.add_run(run_1());
  results.add_task(task_with_result("lr=3", R"({"acc": 1})"));
  const ResultsOutcome outcome = outcome_of(std::move(results));
  std::vector<bool> out_of_date;
  for (const auto& row : outcome.table.rows) {
    for (const report::ResultCell& cell : row) {
      if (cell.task) out_of_date.push_back(cell.task->out_of_date);
    }
  }
  EXPECT_THAT(out_of_date, ElementsAre(true, false, false));
  EXPECT_THAT(outcome.table.notes,
              ElementsAre("1 task finished before what it needs ran again: train/lr=1",
                          "out of date: run 2 ('runs/b') started before run 1, which it needs, ran "
                          "again: 'trainyard retry 2 --cascade' runs it again"));
}

TEST(TaskResults, OtherCodeHasACureInATableOfOneRun) {
  const auto other_code = [] {
    TaskResults results;
    results.add_run(run_1());
    journal::TaskRow task = task_with_result("lr=1", R"({"acc": 1})");
    task.code = "a1b2c3d";
    task.newer_code = "5d6e7f8";
    results.add_task(task);
    return results;
  };
  const std::string text =
      "1 task ran other code (a1b2c3d) than the tasks that started last (5d6e7f8)";
  EXPECT_THAT(outcome_of(other_code()).table.notes,
              ElementsAre(text + ": 'trainyard retry runs/a --other-code' runs it again"));
  TaskResults two = other_code();
  two.add_run(run_2());
  EXPECT_THAT(outcome_of(std::move(two)).table.notes, ElementsAre(text));
}

TEST(TaskResults, NotesOnTheRowsComeBeforeThoseOnTheRun) {
  const auto noted = [] {
    TaskResults results;
    results.add_run(run_1());
    journal::TaskRow diverged =
        task_with_result("lr=1,seed=0", R"({"acc": 1, "loss": null, "curve": [1]})");
    diverged.warning = "result.1.json: 'loss' was NaN: kept as null";
    diverged.edited = true;
    results.add_task(diverged);
    results.add_task(task_with_result("lr=1,seed=1", ""));
    return results;
  };
  const std::string missing = "lr=1,seed=1: no result, FINISHED";
  const std::string number = "loss is NaN in 1 result (shown as -)";
  const std::string edited =
      "1 of 2 tasks ran an earlier command: 'trainyard run --resume runs/a --rerun-changed' runs "
      "it again";
  const std::string lists = "lists and objects left out: curve";
  for (const ResultsRequest& request : {ResultsRequest{}, ResultsRequest{.over = {"seed"}}}) {
    EXPECT_THAT(outcome_of(noted(), request).table.notes,
                ElementsAre(missing, number, edited, lists));
  }
  EXPECT_THAT(outcome_of(noted(), {.where = {"seed=1"}}).table.notes, ElementsAre(missing, lists))
      << "only of the rows that are shown, but for the columns that are not";
}

}  // namespace
}  // namespace trainyard::app

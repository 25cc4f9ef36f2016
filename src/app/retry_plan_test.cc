// The tasks that a retry takes, in which order and with what, and the reasons why it takes none.
#include "app/retry_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/test_run_facts.h"
#include "job/test_job.h"

namespace trainyard::app {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr model::Standing kWell{.status = Status::Exited, .verdict = model::Verdict::Finished};
constexpr model::Standing kExit4{.status = Status::Exception,
                                 .verdict = model::Verdict::Failed,
                                 .failure = model::Failure::Exit,
                                 .exit_code = 4};
constexpr model::Standing kSkipped{.status = Status::Exited, .verdict = model::Verdict::Skipped};
constexpr model::Standing kStopped{.status = Status::Exited, .verdict = model::Verdict::Stopped};
constexpr model::Standing kActive{.status = Status::Training};

journal::GroupRow retried_group(std::uint32_t index, const std::string& name,
                                std::vector<std::string> needs = {}) {
  return {.index = {index},
          .name = name,
          .needs = std::move(needs),
          .needs_tasks = {},
          .name_in_file = name};
}

journal::TaskRow retried_task(const journal::GroupRow& group, const std::string& id,
                              const model::Standing& standing) {
  journal::TaskRow row = test_task(group.name, id, standing);
  row.group = group.index;
  if (standing.verdict == model::Verdict::Skipped) row.attempt = 0;
  return row;
}

/// The facts of a test about run 1, 'runs/job'.
struct RetriedRun {
  std::vector<journal::GroupRow> groups;
  std::vector<journal::TaskRow> tasks;
  std::vector<journal::TaskNeedRow> needs = {};
  bool is_active = false;
  bool has_ended = true;
  bool has_succeeded = false;
  bool is_resumed_by_queue = false;
  Result<std::string> why_out_of_date = {};
  std::set<std::uint32_t> edited = {};
  std::optional<NewRunCommand> new_run = NewRunCommand{"trainyard run job.yaml --new"};
  std::string jobs = {};  ///< The text of a job file; empty: not known.

  /// Calls `use` with the selection of the request and the facts.
  template <class Use>
  auto with_facts(const RetryRequest& request, Use use) const {
    TestRun run = is_active ? running_run(1, "runs/job") : ended_run(1, "runs/job");
    run.tasks = tasks;
    TestTasks its_tasks(run, {});
    const TestFacts runs({run});
    std::optional<job::Jobs> its_jobs;
    if (!jobs.empty()) its_jobs.emplace(job::job_of(jobs));
    const RetryFacts facts{.runs = runs,
                           .tasks = its_tasks,
                           .groups = groups,
                           .needs = needs,
                           .is_active = is_active,
                           .has_ended = has_ended && !is_active,
                           .has_succeeded = [this] { return has_succeeded; },
                           .is_resumed_by_queue = [this] { return is_resumed_by_queue; },
                           .why_out_of_date = [this] { return why_out_of_date; },
                           .edited_tasks = [this] { return edited; },
                           .new_run =
                               [this](const std::vector<std::string>& only) {
                                 std::optional<NewRunCommand> again = new_run;
                                 for (const std::string& each : only) {
                                   if (again) again->command += " --only " + each;
                                 }
                                 return again;
                               },
                           .jobs = [&] { return its_jobs ? &*its_jobs : nullptr; }};
    return use(read_selection({.words = request.words}, runs).value(), facts);
  }

  [[nodiscard]] Result<RetryPlan> plan(const RetryRequest& request) const {
    return with_facts(request, [&](const TasksOfRun& selection, const RetryFacts& facts) {
      return plan_retry(request, selection, read_amounts(request).value(), facts);
    });
  }
  /// The plan for people, or the error.
  [[nodiscard]] std::string text(const RetryRequest& request = {}) const {
    const Result<RetryPlan> planned = plan(request);
    return planned ? plan_text(*planned, "runs/job") : planned.error().message;
  }
  /// The error of a plan without tasks; empty where submissions go back.
  [[nodiscard]] std::string why_nothing(const RetryRequest& request = {},
                                        bool has_submissions = false) const {
    return with_facts(request, [&](const TasksOfRun& selection, const RetryFacts& facts) {
      const auto checked = check_empty_plan(request, selection, facts, has_submissions);
      return checked ? std::string() : checked.error().message;
    });
  }
};

/// train: lr=1 and lr=2 failed, lr=3 has finished; eval, which needs train, was skipped.
RetriedRun failed_run() {
  const journal::GroupRow train = retried_group(0, "train");
  const journal::GroupRow eval = retried_group(1, "eval", {"train"});
  return {.groups = {train, eval},
          .tasks = {retried_task(train, "lr=1", kExit4), retried_task(train, "lr=2", kExit4),
                    retried_task(train, "lr=3", kWell), retried_task(eval, "all", kSkipped)}};
}

/// Both tasks of train have finished, and report, which needs train, as well.
RetriedRun finished_run() {
  const journal::GroupRow train = retried_group(0, "train");
  const journal::GroupRow report = retried_group(1, "report", {"train"});
  return {.groups = {train, report},
          .tasks = {retried_task(train, "lr=1", kWell), retried_task(train, "lr=2", kWell),
                    retried_task(report, "all", kWell)},
          .has_succeeded = true};
}

TEST(RetryPlan, TakesTheFailedTasksWithoutWords) {
  EXPECT_EQ(failed_run().text(),
            "2 tasks of 'runs/job':\n  train/lr=1: EXIT 4 after 1 attempt\n"
            "  train/lr=2: EXIT 4 after 1 attempt\n");
}

TEST(RetryPlan, TakesTheNamedTasksOfTheNamedRun) {
  EXPECT_EQ(failed_run().text({.words = {"1", "lr=2"}}),
            "1 task of 'runs/job':\n  train/lr=2: EXIT 4 after 1 attempt\n");
}

TEST(RetryPlan, TakesSkippedAndStoppedTasksOnlyByTheirNameOrState) {
  RetriedRun run = failed_run();
  run.tasks[2].standing = kStopped;
  run.groups[1].needs.clear();
  EXPECT_EQ(run.plan({})->tasks.size(), 2);
  EXPECT_EQ(run.text({.words = {":stopped", ":skipped"}}),
            "2 tasks of 'runs/job':\n  train/lr=3: STOPPED after 1 attempt\n"
            "  eval/all: SKIPPED after 0 attempts\n");
  EXPECT_EQ(run.text({.words = {"all"}}),
            "1 task of 'runs/job':\n  eval/all: SKIPPED after 0 attempts\n");
}

TEST(RetryPlan, ShowsTwentyTasks) {
  RetriedRun run = failed_run();
  run.tasks.resize(1);
  for (int i = 2; i <= 22; ++i) {
    run.tasks.push_back(retried_task(run.groups[0], fmt::format("lr={}", i), kExit4));
  }
  const std::string text = run.text();
  EXPECT_EQ(std::ranges::count(text, '\n'), 22) << text;
  EXPECT_TRUE(text.ends_with("  train/lr=20: EXIT 4 after 1 attempt\n  and 2 more\n")) << text;
}

TEST(RetryPlan, IsEmptyIfNoTaskFailed) {
  const Result<RetryPlan> plan = finished_run().plan({});
  ASSERT_TRUE(plan);
  EXPECT_THAT(plan->tasks, IsEmpty());
  EXPECT_EQ(plan_text(*plan, "runs/job"), "");
}

TEST(RetryPlan, NamesTheFailedTasksIfNoTaskIsInTheState) {
  RetriedRun run = failed_run();
  EXPECT_EQ(run.text({.words = {":oom"}}),
            "nothing to retry in run 1: no task of 'runs/job' is :oom; 2 tasks failed: train/lr=1 "
            "(EXIT 4), train/lr=2 (EXIT 4)");
  run.tasks.push_back(retried_task(run.groups[0], "lr=4", kExit4));
  run.tasks.push_back(retried_task(run.groups[0], "lr=5", kExit4));
  EXPECT_THAT(run.text({.words = {":oom"}}),
              HasSubstr("; 4 tasks failed: train/lr=1 (EXIT 4), train/lr=2 (EXIT 4), train/lr=4 "
                        "(EXIT 4) and 1 more"));
  EXPECT_THAT(finished_run().text({.words = {"lr=1", ":oom"}}),
              HasSubstr("none of the selected tasks of 'runs/job' is :oom; no task failed"));
}

TEST(RetryPlan, OfARunThatDiedIsRefusedAndNamesTheResume) {
  RetriedRun run = failed_run();
  run.has_ended = false;
  EXPECT_EQ(run.text(),
            "the run in 'runs/job' died: 'trainyard run --resume runs/job' resumes it and runs all "
            "tasks that have not finished");
}

TEST(RetryPlan, RefusesAFinishedTaskAndNamesTheRunThatRunsItAgain) {
  EXPECT_EQ(
      failed_run().text({.words = {"lr=3"}}),
      "train/lr=3 has finished: only tasks that have not finished are retried; 'trainyard run "
      "job.yaml --new --only train/lr=3' runs it again, in another run");
}

TEST(RetryPlan, RefusesATaskThatHasNotEnded) {
  RetriedRun run = failed_run();
  run.is_active = true;
  run.tasks[0].standing = kActive;
  EXPECT_EQ(run.text({.words = {"lr=1"}}),
            "train/lr=1 is RUNNING: only tasks that have ended are retried");
}

TEST(RetryPlan, RefusesSeveralTasksOfWhichNoneCanBeRetried) {
  RetriedRun run = failed_run();
  run.is_active = true;
  run.tasks[0].standing = kActive;
  EXPECT_EQ(run.text({.words = {"lr=1", "lr=3"}}),
            "no selected task of 'runs/job' can be retried: each has finished, or is still running "
            "or waiting; 'trainyard run job.yaml --new --only lr=1 --only lr=3' runs these tasks "
            "again, in another run");
}

TEST(RetryPlan, NamesNoCommandOfTheJobFileForTasksThatWereAdded) {
  RetriedRun run = finished_run();
  for (journal::TaskRow& task : run.tasks) task.batch = 2;
  EXPECT_EQ(run.text({.words = {"lr=1"}}),
            "train/lr=1 has finished: only tasks that have not finished are retried");
  EXPECT_EQ(run.text({.words = {"train"}}),
            "no selected task of 'runs/job' can be retried: each has finished");
}

TEST(RetryPlan, NamesNoCommandIfNoCommandLineStartsTheRunAgain) {
  RetriedRun run = finished_run();
  run.new_run.reset();
  EXPECT_EQ(run.text({.words = {"lr=1"}}),
            "train/lr=1 has finished: only tasks that have not finished are retried");
}

TEST(RetryPlan, NamesTheCommandOfARunOfACommand) {
  RetriedRun run = finished_run();
  run.new_run = NewRunCommand{.command = "trainyard run -- echo 'a b'", .is_of_command = true};
  run.tasks.resize(1);
  EXPECT_EQ(run.text({.words = {":finished"}}),
            "train/lr=1 has finished: only tasks that have not finished are retried; to run its "
            "command again, in another run, type\n  trainyard run -- echo 'a b' --only train/lr=1");
}

TEST(RetryPlan, NamesChangedForAFinishedTaskThatWasEdited) {
  RetriedRun run = finished_run();
  run.edited = {0};
  EXPECT_EQ(run.text({.words = {"lr=1"}}),
            "train/lr=1 has finished: only tasks that have not finished are retried; 'trainyard "
            "retry runs/job --changed' retries the tasks that were edited in the job file");
  EXPECT_THAT(run.text({.words = {"lr=2"}}), HasSubstr("--new --only train/lr=2' runs it again"));
}

TEST(RetryPlan, NamesOtherCodeForAFinishedTaskThatRanOtherCode) {
  RetriedRun run = finished_run();
  run.tasks[0].newer_code = "b2b2b2b";
  const std::string cure =
      "; 'trainyard retry runs/job --other-code' retries the tasks that ran other code than the "
      "tasks that started last";
  EXPECT_THAT(run.text({.words = {"lr=1"}}), HasSubstr(cure));
  run.is_active = true;
  EXPECT_THAT(run.text({.words = {"lr=1"}}), HasSubstr("--new --only train/lr=1' runs it again"))
      << "an active run retries no finished task";
}

TEST(RetryPlan, KeepsTheTasksThatAreNotRetriedAsFarAsAWordNamesThem) {
  RetriedRun run = failed_run();
  run.tasks[1].standing = kActive;
  run.is_active = true;
  const auto not_retried = [&run](const std::vector<std::string>& words) {
    return names_and_words(run.plan({.words = words})->not_retried);
  };
  EXPECT_EQ(not_retried({"lr=1", "lr=2", "train/lr=3"}),
            "train/lr=2 is RUNNING, train/lr=3 is FINISHED");
  EXPECT_EQ(not_retried({"train"}), "") << "a group";
  EXPECT_EQ(not_retried({"lr=1"}), "");
}

TEST(RetryPlan, WithChangedTakesTasksThatWereEditedAlsoFinishedOnes) {
  RetriedRun run = failed_run();
  run.edited = {0, 2};
  EXPECT_EQ(run.text({.changed = true}),
            "2 tasks of 'runs/job':\n  train/lr=1: EXIT 4 after 1 attempt, and changed since\n"
            "  train/lr=3: FINISHED after 1 attempt, and changed since\n");
  EXPECT_THAT(run.plan({.words = {"lr=1", "lr=2"}, .changed = true})->not_retried, IsEmpty());
}

TEST(RetryPlan, WithChangedAndCascadeSaysWhichTasksWereNotEdited) {
  RetriedRun run = finished_run();
  run.edited = {0};
  EXPECT_EQ(run.text({.cascade = true, .changed = true}),
            "2 tasks of 'runs/job':\n  train/lr=1: FINISHED after 1 attempt, and changed since\n"
            "  report/all: FINISHED after 1 attempt, and needs one of these\n");
}

TEST(RetryPlan, WithChangedIsRefusedIfNoTaskWasEdited) {
  EXPECT_EQ(failed_run().text({.changed = true}),
            "none of the selected tasks of 'runs/job' has changed in the job file; 'trainyard run "
            "job.yaml --new' runs all tasks with the code as it is now, in another run");
  RetriedRun run = failed_run();
  run.edited = {2};
  EXPECT_EQ(run.text({.words = {"lr=1"}, .changed = true}),
            "none of the selected tasks of 'runs/job' has changed in the job file");
}

TEST(RetryPlan, WithOtherCodeTakesTasksThatRanOtherCode) {
  RetriedRun run = finished_run();
  run.tasks[1].newer_code = "b2b2b2b";
  EXPECT_EQ(run.text({.other_code = true}),
            "1 task of 'runs/job':\n  train/lr=2: FINISHED after 1 attempt, and ran other code\n");
}

TEST(RetryPlan, WithOtherCodeIsRefusedIfNoTaskRanOtherCodeOrTheCodeIsUnknown) {
  RetriedRun run = finished_run();
  const std::string cure =
      "; 'trainyard run job.yaml --new' runs all tasks with the code as it is now, in another run";
  EXPECT_EQ(run.text({.other_code = true}),
            "the code of the selected tasks of 'runs/job' is not known: tasks must run in a git "
            "work tree" +
                cure);
  run.tasks[0].code = "a1a1a1a";
  EXPECT_EQ(run.text({.other_code = true}),
            "none of the selected tasks of 'runs/job' ran other code than the tasks that started "
            "last" +
                cure);
}

TEST(RetryPlan, OfAnActiveRunIsRefusedWithChangedAndOtherCode) {
  RetriedRun run = failed_run();
  run.is_active = true;
  EXPECT_EQ(
      run.text({.changed = true}),
      "the run in 'runs/job' is active with its original job file: --changed works only after "
      "a run has ended");
  EXPECT_EQ(run.text({.other_code = true}),
            "the run in 'runs/job' is active: --other-code works only after a run has ended");
}

TEST(RetryPlan, RefusesATaskThatWouldBeSkippedAgain) {
  EXPECT_EQ(failed_run().text({.words = {"eval/all"}}),
            "eval/all needs group 'train', which has not succeeded; to run both, type: trainyard "
            "retry runs/job train eval/all");
}

TEST(RetryPlan, RefusesAStoppedTaskThatNeedsTheSuccessOfStoppedOnes) {
  RetriedRun run = failed_run();
  for (journal::TaskRow& task : run.tasks) task.standing = kStopped;
  const std::string job =
      "name: job\ngroups: [{name: train, memory: 10MB, matrix: {lr: [1, 2, 3]}, "
      "tasks: [{command: 't {lr}'}]}, "
      "{name: eval, memory: 10MB, needs: train, tasks: [{id: all, command: t, if: IF}]}]";
  const auto with_condition = [&job](const std::string& condition) {
    std::string text = job;
    return text.replace(text.find("IF"), 2, condition);
  };
  run.jobs = with_condition("success()");
  EXPECT_EQ(run.text({.words = {"eval/all"}}),
            "eval/all needs group 'train', which has not succeeded; to run both, type: trainyard "
            "retry runs/job train eval/all");
  run.jobs = with_condition("always()");
  EXPECT_EQ(run.text({.words = {"eval/all"}}),
            "1 task of 'runs/job':\n  eval/all: STOPPED after 0 attempts\n");
}

TEST(RetryPlan, WithCascadeTakesTheTasksThatWereSkippedBecauseOfTheFailedOnes) {
  EXPECT_EQ(failed_run().text({.cascade = true}),
            "3 tasks of 'runs/job':\n  train/lr=1: EXIT 4 after 1 attempt\n"
            "  train/lr=2: EXIT 4 after 1 attempt\n  eval/all: SKIPPED after 0 attempts\n");
}

TEST(RetryPlan, WithCascadeTakesFinishedTasksThatNeedTheFailedOnes) {
  RetriedRun run = failed_run();
  run.tasks[3].standing = kWell;
  run.tasks[3].attempt = 1;
  EXPECT_THAT(run.text({.cascade = true}),
              HasSubstr("  eval/all: FINISHED after 1 attempt, and needs one of these\n"));
  run.is_active = true;
  EXPECT_EQ(run.plan({.cascade = true})->tasks.size(), 2)
      << "an active run retries no finished task";
}

TEST(RetryPlan, WithCascadeTakesFinishedTasksThatAreOutOfDate) {
  RetriedRun run = finished_run();
  run.tasks[2].out_of_date = true;
  EXPECT_EQ(run.text({.cascade = true}),
            "1 task of 'runs/job':\n  report/all: FINISHED after 1 attempt, and out of date\n");
  EXPECT_THAT(run.plan({})->tasks, IsEmpty());
  run.is_active = true;
  EXPECT_THAT(run.plan({.cascade = true})->tasks, IsEmpty());
}

TEST(RetryPlan, WithCascadeTakesAllOfARunThatIsOutOfDate) {
  RetriedRun run = failed_run();
  run.why_out_of_date = "this run started before run 7, which it needs, ran again: cure";
  run.tasks[1].standing = kStopped;
  EXPECT_EQ(run.text({.cascade = true}),
            "4 tasks of 'runs/job':\n  train/lr=1: EXIT 4 after 1 attempt\n"
            "  train/lr=2: STOPPED after 1 attempt\n"
            "  train/lr=3: FINISHED after 1 attempt, and out of date\n"
            "  eval/all: SKIPPED after 0 attempts\n");
}

TEST(RetryPlan, WithCascadeIsRefusedWhereItIsUnknownWhetherTheRunIsOutOfDate) {
  RetriedRun run = failed_run();
  Error error{"too many open files"};
  error.of_machine = true;
  run.why_out_of_date = std::unexpected(error);
  const Result<RetryPlan> plan = run.plan({.cascade = true});
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().message, "too many open files");
  EXPECT_TRUE(plan.error().of_machine) << "the queue retries later";
}

TEST(RetryPlan, StartsNeededTasksFirst) {
  RetriedRun run = failed_run();
  run.groups[0].needs = {"eval"};
  run.groups[1].needs.clear();
  run.tasks[3].standing = kExit4;
  run.tasks[3].attempt = 1;
  EXPECT_EQ(run.text(),
            "3 tasks of 'runs/job':\n  eval/all: EXIT 4 after 1 attempt\n"
            "  train/lr=1: EXIT 4 after 1 attempt\n  train/lr=2: EXIT 4 after 1 attempt\n");
}

TEST(RetryPlan, RefusesGpuMemoryForTasksWithoutAGpu) {
  EXPECT_EQ(failed_run().text({.gpu_memory = "1GB"}),
            "--gpu-memory: train/lr=1 and 1 more use no GPU; leave it out, or reserve more of the "
            "machine's memory with --memory");
}

constexpr const char* kTrainJob =
    "name: job\ngroups: [{name: train, memory: 10MB, matrix: {lr: [1, 2, 3]}, "
    "tasks: [{command: 't {lr}'}]}]";

TEST(RetryPlan, RefusesAmountsThatTheMachineDoesNotHaveWithTheNumberOfTasks) {
  RetriedRun run = failed_run();
  run.jobs = kTrainJob;
  EXPECT_THAT(run.text({.memory = "900TB"}),
              HasSubstr("train/lr=1 and 1 more task can never run here: each needs 900 TB of "
                        "memory, this machine has "));
  EXPECT_EQ(run.text({.words = {"lr=2"}, .memory = "1GB", .time_limit = "2h"}),
            "1 task of 'runs/job' with at least 1 GB of memory, a time limit of 2h:\n"
            "  train/lr=2: EXIT 4 after 1 attempt\n");
}

TEST(RetryPlan, LeavesAmountsToAnActiveRunUnlessItIsNotAsked) {
  RetriedRun run = failed_run();
  run.is_active = true;
  run.jobs = kTrainJob;
  EXPECT_TRUE(run.plan({.memory = "900TB"}));
  EXPECT_THAT(run.text({.memory = "900TB", .dry_run = true}), HasSubstr("can never run here"));
  run.jobs.clear();
  EXPECT_TRUE(run.plan({.memory = "900TB", .dry_run = true})) << "the machines are not known";
}

TEST(RetryPlan, RequestsEachTaskWithTheAmounts) {
  const std::vector<wire::Retry> requests =
      requests_of(*failed_run().plan({.memory = "1GB", .time_limit = "1s", .cascade = true}));
  ASSERT_EQ(requests.size(), 3);
  EXPECT_EQ(
      requests[2],
      (wire::Retry{
          .group = "eval", .id = "all", .memory_bytes = 1'000'000'000, .time_limit_ms = 1000}));
}

TEST(RetryPlan, RequestsNoTaskIfAllHaveFinishedAndWereEdited) {
  RetriedRun run = failed_run();
  run.edited = {2};
  EXPECT_THAT(requests_of(*run.plan({.changed = true})), IsEmpty());
  run.edited = {0, 2};
  EXPECT_EQ(requests_of(*run.plan({.changed = true})).size(), 2);
}

TEST(EmptyRetryPlan, NamesTheRunThatRunsAllTasksAgain) {
  RetriedRun run = finished_run();
  EXPECT_EQ(
      run.why_nothing(),
      "nothing to retry: no task of run 1 ('runs/job') failed; 'trainyard run job.yaml --new' "
      "runs all tasks with the code as it is now, in another run");
  run.is_active = true;
  EXPECT_EQ(run.why_nothing(), "nothing to retry: no task of run 1 ('runs/job') failed");
}

TEST(EmptyRetryPlan, NamesTheCureOfARunThatIsOutOfDate) {
  RetriedRun run = finished_run();
  run.why_out_of_date = "this run started before run 7, which it needs, ran again: cure";
  EXPECT_EQ(
      run.why_nothing(),
      "nothing to retry: no task of run 1 ('runs/job') failed; this run started before run 7, "
      "which it needs, ran again: cure");
}

TEST(EmptyRetryPlan, NamesTheResumeThatRunsStoppedAndSkippedTasks) {
  RetriedRun run = finished_run();
  run.groups[0].stopped = 2;
  const std::string none = "nothing to retry: no task of run 1 ('runs/job') failed; ";
  EXPECT_EQ(run.why_nothing(),
            none + "2 tasks are STOPPED: 'trainyard run --resume runs/job' runs them");
  run.is_resumed_by_queue = true;
  run.groups[1].skipped = 1;
  EXPECT_EQ(run.why_nothing(), none + "3 tasks are STOPPED or SKIPPED: 'trainyard up' runs them");
}

TEST(EmptyRetryPlan, NamesTheRetryOfStoppedAndSkippedTasksWithAmountsOrInAnActiveRun) {
  RetriedRun run = finished_run();
  run.groups[0].stopped = 1;
  const std::string none = "nothing to retry: no task of run 1 ('runs/job') failed; ";
  EXPECT_EQ(run.why_nothing({.memory = "20MB", .time_limit = "2h"}),
            none +
                "1 task is STOPPED: 'trainyard retry runs/job :stopped --memory 20MB "
                "--time-limit 2h' runs it");
  run.groups[0].stopped = 0;
  run.groups[0].skipped = 1;
  run.is_active = true;
  for (const bool cascade : {false, true}) {
    EXPECT_EQ(run.why_nothing({.cascade = cascade}),
              none + "1 task is SKIPPED: 'trainyard retry runs/job :skipped' runs it");
  }
}

TEST(EmptyRetryPlan, IsCarriedOutForSubmissionsIfTheRunHasSucceededOrStillMay) {
  RetriedRun run = finished_run();
  EXPECT_EQ(run.why_nothing({.cascade = true}, true), "");
  run.has_succeeded = false;
  EXPECT_THAT(run.why_nothing({.cascade = true}, true), HasSubstr("nothing to retry"));
  run.is_active = true;
  EXPECT_EQ(run.why_nothing({.cascade = true}, true), "");
}

/// The renames of a retry of train/lr=1 and train/lr=2, of which the first directories have files.
std::vector<std::string> renames_of(const std::set<std::string>& have_files,
                                    const std::set<std::string>& exist) {
  RetriedRun run = failed_run();
  run.tasks[0].directory = "train/lr=1";
  run.tasks[1].directory = "train/lr=2";
  std::vector<std::string> texts;
  for (const auto& [task, from, to] : checkpoint_renames(
           *run.plan({.fresh = true}), "/here/runs/job",
           {.has_files = [&](const std::string& path) { return have_files.contains(path); },
            .exists = [&](const std::string& path) { return exist.contains(path); }})) {
    texts.push_back(fmt::format("{}: {} {}", task, from, to));
  }
  return texts;
}

TEST(CheckpointRenames, TakeTheFirstFreeName) {
  const std::string one = "/here/runs/job/train/lr=1/checkpoints";
  const std::string two = "/here/runs/job/train/lr=2/checkpoints";
  EXPECT_THAT(renames_of({one, two}, {one, two, two + ".1", two + ".2"}),
              ElementsAre(fmt::format("0: {0} {0}.1", one), fmt::format("1: {0} {0}.3", two)));
}

TEST(CheckpointRenames, LeaveTasksWithoutCheckpoints) {
  const std::string two = "/here/runs/job/train/lr=2/checkpoints";
  EXPECT_THAT(renames_of({two}, {}), ElementsAre(fmt::format("1: {0} {0}.1", two)));
  EXPECT_THAT(renames_of({}, {two}), IsEmpty());
}

/// The answers to a retry of train/lr=1, train/lr=2 and eval/all.
RetryAnswers answers_of(const std::vector<wire::ControlReply>& replies) {
  return read_answers(*failed_run().plan({.cascade = true}), replies, "runs/my job");
}

TEST(RetryAnswers, AreNoReasonsIfAllTasksAreAccepted) {
  const RetryAnswers answers = answers_of({{}, {}, {}});
  EXPECT_THAT(answers.refused, IsEmpty());
  EXPECT_EQ(answers.reasons.message, "");
}

TEST(RetryAnswers, AreOneLineForAllTasksThatCanNeverRunForTheSameReason) {
  const auto never = [](const std::string& task) {
    return wire::ControlReply{.outcome = wire::Outcome::Error,
                              .text = task + " can never run here: needs 900 TB of memory"};
  };
  const RetryAnswers answers =
      answers_of({never("train/lr=1"), never("train/lr=2"), never("eval/all")});
  EXPECT_THAT(answers.refused, ElementsAre(0, 1, 2));
  EXPECT_EQ(answers.reasons.message,
            "train/lr=1 and 2 more tasks can never run here: each needs 900 TB of memory");
  EXPECT_THAT(answers.reasons.others, IsEmpty());
  EXPECT_FALSE(answers.is_unknown);
}

TEST(RetryAnswers, SayWhyATaskIsNotRetriedAndNameTheCascade) {
  const RetryAnswers answers =
      answers_of({{},
                  {.outcome = wire::Outcome::NotRunning},
                  {.outcome = wire::Outcome::Error, .text = "a program retries its tasks itself"}});
  EXPECT_THAT(answers.refused, ElementsAre(1, 2));
  EXPECT_EQ(answers.reasons.message,
            "train/lr=2 is not retried: it has started over already, its group or the run is "
            "ending, or a task that it needs has failed; to retry that, too, type: trainyard retry "
            "'runs/my job' --cascade");
  EXPECT_THAT(answers.reasons.others, ElementsAre("a program retries its tasks itself"));
}

TEST(RetryAnswers, SayOnceWhyTheRunRetriesNoTask) {
  const wire::ControlReply stopping{.outcome = wire::Outcome::Error, .text = "the run is stopping"};
  const RetryAnswers answers = answers_of({stopping, stopping, stopping});
  EXPECT_THAT(answers.refused, ElementsAre(0, 1, 2));
  EXPECT_EQ(answers.reasons.message, "the run is stopping");
  EXPECT_THAT(answers.reasons.others, IsEmpty());
}

TEST(RetryAnswers, SayThatTheFirstRefusedTaskIsUnknown) {
  const RetryAnswers answers = answers_of({{}, {.outcome = wire::Outcome::NoSuchTask}, {}});
  EXPECT_TRUE(answers.is_unknown);
  EXPECT_EQ(answers.reasons.message, "the run has no task train/lr=2");
  EXPECT_FALSE(
      answers_of(
          {{.outcome = wire::Outcome::NotRunning}, {.outcome = wire::Outcome::NoSuchTask}, {}})
          .is_unknown);
}

/// The reason why words and options are refused for a submission that has not started.
std::string why_no_tasks(const RetryRequest& request, bool is_queued = false) {
  const TestFacts runs({queued_run(2, "runs/later")});
  const auto selection = read_selection({.words = request.words}, runs);
  if (!selection) return selection.error().message;
  const Result<void> checked = check_no_tasks(request, *selection, is_queued, runs);
  return checked ? std::string() : checked.error().message;
}

TEST(RetryOfASubmission, TakesTheRunAlone) {
  EXPECT_EQ(why_no_tasks({}), "");
  EXPECT_EQ(why_no_tasks({.words = {"2"}, .cascade = true, .dry_run = true}), "");
}

TEST(RetryOfASubmission, IsRefusedWithWordsAndOptionsAboutTasks) {
  for (const RetryRequest& request :
       {RetryRequest{.words = {"2/later"}}, RetryRequest{.words = {"2", ":failed"}},
        RetryRequest{.words = {"2"}, .memory = "1GB"},
        RetryRequest{.words = {"2"}, .gpu_memory = "1GB"},
        RetryRequest{.words = {"2"}, .time_limit = "1h"},
        RetryRequest{.words = {"2"}, .changed = true},
        RetryRequest{.words = {"2"}, .other_code = true},
        RetryRequest{.words = {"2"}, .fresh = true}}) {
    EXPECT_EQ(why_no_tasks(request),
              "run 2 ('runs/later') has not started and has no tasks yet: 'trainyard retry "
              "runs/later' puts it back into your queue");
    EXPECT_EQ(why_no_tasks(request, true),
              "run 2 ('runs/later') is in your queue, so no options about tasks apply to it: type "
              "'trainyard retry runs/later --cascade'");
  }
}

TEST(RetryOfASubmission, SaysThatANumberIsNotThatOfARun) {
  EXPECT_EQ(why_no_tasks({.words = {"99"}}),
            "run 99 not found; the last one is run 2 ('runs/later')");
}

}  // namespace
}  // namespace trainyard::app

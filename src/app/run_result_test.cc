// A run in which tasks failed is told from one that is only incomplete; also by a wait for runs.
#include "app/run_result.h"

#include <cstddef>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "run/run_directory.h"

namespace trainyard::app {
namespace {

using run::ExitCode;
using Stage = run::RunOutcome::Stage;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr RunEnd kSuccess{.code = 0};
constexpr RunEnd kIncomplete{.code = 75};
constexpr RunEnd kTaskFailed{.code = 9, .task_failed = true};

/// Run 7 and the queue at one look of a wait.
struct Look {
  WaitedSubmission submission = {};
  run::RunOutcome outcome = {.stage = Stage::AtWork};
  std::string idle = {};
  int held = 0;
  std::optional<std::int64_t> suspended = {};
  std::optional<Error> unreadable = {};
};

struct EndOfWait {
  int code = 0;
  std::vector<std::string> notes;
  std::size_t pauses = 0;
  int journal_readings = 0;
};

/// Waits for that number of runs, each of which passes through these looks, and is locked while it is
/// at work. Throws if a run has not ended at its last look.
EndOfWait wait_through(const std::vector<Look>& looks, std::size_t runs = 1) {
  EndOfWait waited;
  std::size_t place = 0;
  const auto look = [&]() -> const Look& { return looks.at(place); };
  waited.code = wait_for_runs(
      std::vector<std::string>(runs, "/here/runs/x"), false,
      {.named =
           [&place](const std::string& run) {
             place = 0;
             return KnownRun{.directory = run, .real = run, .shown = "runs/x", .number = 7};
           },
       .submission = [&](std::uint32_t) { return look().submission; },
       .why_nothing_begins = [&] { return look().idle; },
       .is_locked = [&](const std::string&) { return look().outcome.stage == Stage::AtWork; },
       .outcome = [&](const std::string&) -> Result<run::RunOutcome> {
         if (look().unreadable) return std::unexpected(*look().unreadable);
         return look().outcome;
       },
       .held_alone =
           [&](const std::string&) {
             ++waited.journal_readings;
             return look().held;
           },
       .suspended = [&](const std::string&) { return look().suspended; },
       .note = [&](std::string_view message) { waited.notes.emplace_back(message); },
       .pause =
           [&] {
             ++waited.pauses;
             ++place;
           }});
  return waited;
}

/// A submission that waits in a queue that is up.
Look queued(const std::string& idle = {}) {
  return {.submission = {.is_in_queue = true, .is_served = true},
          .outcome = {.stage = Stage::NotBegun},
          .idle = idle};
}
/// The run has ended with this code.
Look over(ExitCode code, const std::string& why = {}) {
  return {.outcome = {.stage = Stage::Over, .code = code, .why = why}};
}

/// The held tasks of a run whose groups have this number of tasks left, none of which is running.
int held_of(const std::vector<journal::WaitingReason>& waiting, int left, int running = 0) {
  return held_tasks_alone(waiting, [left, running] {
    std::vector<journal::GroupRow> groups(1);
    groups[0].running = running;
    groups[0].waiting = left;
    return Result<std::vector<journal::GroupRow>>(std::move(groups));
  });
}

InactiveRun inactive(std::vector<journal::ExecutionRow> executions,
                     const journal::GroupRow& group = {}) {
  return {.executions = std::move(executions),
          .groups = {group},
          .first_tasks = {},
          .way_on = "'resume' resumes it"};
}

/// A run whose last execution has ended in this way.
InactiveRun ended(const std::string& how, const journal::GroupRow& group = {}) {
  return inactive({{.ended = Instant{}, .how = how}}, group);
}

TEST(RunResult, IsIncompleteIfTasksAreOnlyStopped) {
  const journal::GroupRow train{.tasks = 2, .finished = 1, .stopped = 1};
  const journal::GroupRow eval{.tasks = 1, .stopped = 1};
  EXPECT_EQ(exit_code_of({train, eval}), ExitCode::NotDone);
  EXPECT_EQ(shortfall_text({train, eval}), "1 of 3 tasks finished, 2 stopped");
}

TEST(RunResult, IsAFailureIfATaskFailedOrWasSkipped) {
  const journal::GroupRow failed{.tasks = 2, .failed = 1, .stopped = 1};
  const journal::GroupRow skipped{.tasks = 1, .skipped = 1};
  EXPECT_EQ(exit_code_of({failed}), ExitCode::TaskFailed);
  EXPECT_EQ(shortfall_text({failed, skipped}), "1 of 3 tasks failed, 1 skipped");
  EXPECT_EQ(exit_code_of({skipped}), ExitCode::TaskFailed);
  EXPECT_EQ(shortfall_text({skipped}), "1 of 1 task skipped");
}

TEST(RunResult, IsASuccessIfTheOtherTasksDidNotHaveToRun) {
  const journal::GroupRow train{.tasks = 4, .finished = 2, .not_needed = 1, .not_selected = 1};
  EXPECT_EQ(exit_code_of({train}), ExitCode::Success);
}

TEST(Outcome, OfARunWithoutTheEndOfItsLastExecutionIsThatItDied) {
  for (const InactiveRun& run : {inactive({}), inactive({{.how = journal::kInterrupted}})}) {
    const run::RunOutcome outcome = outcome_of_inactive(run);
    EXPECT_EQ(outcome.stage, Stage::Died);
    EXPECT_EQ(outcome.code, ExitCode::NotDone);
    EXPECT_EQ(outcome.why, "it died; 'resume' resumes it");
  }
}

TEST(Outcome, OfAnInterruptedRunSaysByWhatAndHowToResumeIt) {
  const run::RunOutcome typed = outcome_of_inactive(ended(journal::kInterrupted));
  EXPECT_EQ(typed.stage, Stage::Interrupted);
  EXPECT_EQ(typed.code, ExitCode::Interrupted);
  EXPECT_EQ(typed.why, "interrupted; 'resume' resumes it");
  const run::RunOutcome signal = outcome_of_inactive(ended(run::kTerminated));
  EXPECT_EQ(signal.code, ExitCode::Terminated);
  EXPECT_EQ(signal.why, "interrupted by TERM; 'resume' resumes it");
}

TEST(Outcome, OfARunThatEndedByItselfIsThatOfItsTasks) {
  const run::RunOutcome success =
      outcome_of_inactive(ended(run::kEnded, {.tasks = 1, .finished = 1}));
  EXPECT_EQ(success.stage, Stage::Over);
  EXPECT_EQ(success.code, ExitCode::Success);
  const run::RunOutcome failed = outcome_of_inactive(ended(run::kEnded, {.tasks = 2, .failed = 1}));
  EXPECT_EQ(failed.code, ExitCode::TaskFailed);
  EXPECT_EQ(failed.why, "1 of 2 tasks failed");
  const run::RunOutcome stopped =
      outcome_of_inactive(ended(run::kEnded, {.tasks = 2, .stopped = 2}));
  EXPECT_EQ(stopped.code, ExitCode::NotDone);
  EXPECT_EQ(stopped.why, "0 of 2 tasks finished, 2 stopped; 'resume' resumes it");
}

TEST(Outcome, OfARunThatLacksSomethingIsIncompleteUnlessATaskFailed) {
  const std::string how = std::string(run::kNotAllDone) + "no machine is left";
  const run::RunOutcome incomplete = outcome_of_inactive(ended(how, {.tasks = 1, .finished = 1}));
  EXPECT_EQ(incomplete.stage, Stage::Over);
  EXPECT_EQ(incomplete.code, ExitCode::NotDone);
  EXPECT_EQ(incomplete.why, how);
  const run::RunOutcome failed = outcome_of_inactive(ended(how, {.tasks = 1, .failed = 1}));
  EXPECT_EQ(failed.code, ExitCode::TaskFailed);
  EXPECT_EQ(failed.why, how);
  EXPECT_EQ(outcome_of_inactive(ended("the journal is full")).code, ExitCode::NotDone);
}

TEST(Outcome, HasTheExitCodeOfTheOnlyTaskIfItFailedByItself) {
  InactiveRun run = ended(run::kEnded, {.tasks = 1, .failed = 1});
  journal::TaskRow task;
  task.standing = {.verdict = model::Verdict::Failed, .exit_code = 9};
  run.first_tasks = {task};
  EXPECT_EQ(outcome_of_inactive(run).task_code, 9);
  run.first_tasks = {task, task};
  EXPECT_EQ(outcome_of_inactive(run).task_code, std::nullopt);
  task.standing.exit_code = -1;
  run.first_tasks = {task};
  EXPECT_EQ(outcome_of_inactive(run).task_code, std::nullopt);
}

TEST(RunEnd, IsAFailureOfATaskUnlessTheRunIsOnlyIncomplete) {
  EXPECT_TRUE(end_of({.code = ExitCode::TaskFailed}).task_failed);
  EXPECT_TRUE(end_of({.code = ExitCode::Usage}).task_failed);
  for (const ExitCode code :
       {ExitCode::Success, ExitCode::NotDone, ExitCode::Interrupted, ExitCode::Terminated}) {
    const RunEnd end = end_of({.code = code});
    EXPECT_EQ(end.code, static_cast<int>(code));
    EXPECT_FALSE(end.task_failed);
  }
}

TEST(RunEnd, HasTheExitCodeOfTheOneTaskWhateverItIs) {
  const RunEnd end = end_of({.code = ExitCode::TaskFailed, .task_code = 75});
  EXPECT_EQ(end.code, 75);
  EXPECT_TRUE(end.task_failed);
}

TEST(WaitCode, OfOneRunIsItsOwn) {
  EXPECT_EQ(wait_code({kSuccess}, false), 0);
  EXPECT_EQ(wait_code({kTaskFailed}, false), 9);
  EXPECT_EQ(wait_code({kIncomplete}, true), 75);
}

TEST(WaitCode, OfSeveralRunsSaysWhetherATaskFailed) {
  EXPECT_EQ(wait_code({kSuccess, kSuccess}, false), 0);
  EXPECT_EQ(wait_code({kSuccess, kIncomplete}, false), 75);
  EXPECT_EQ(wait_code({kIncomplete, kSuccess}, false), 75);
  EXPECT_EQ(wait_code({kIncomplete, kTaskFailed}, false), 1);
  EXPECT_EQ(wait_code({kTaskFailed, kSuccess}, false), 1);
}

TEST(WaitCode, WithoutANameIsThatOfTheNewestRunIfTheOthersSucceeded) {
  EXPECT_EQ(wait_code({kTaskFailed, kSuccess, kSuccess}, true), 9);
  EXPECT_EQ(wait_code({kTaskFailed, kIncomplete}, true), 1);
  EXPECT_EQ(wait_code({kSuccess, kIncomplete}, true), 75);
}

TEST(WaitForRuns, EndsWithTheRunWhetherOrNotAQueueStartedIt) {
  const EndOfWait alone = wait_through({{}, {}, over(ExitCode::Success)});
  EXPECT_EQ(alone.code, 0);
  EXPECT_THAT(alone.notes, IsEmpty());
  EXPECT_EQ(alone.pauses, 2U);
  const Look runs{.submission = {.is_in_queue = true, .is_served = true}};
  const EndOfWait of_queue =
      wait_through({queued(), runs, queued(), over(ExitCode::TaskFailed, "1 of 2 tasks failed")});
  EXPECT_EQ(of_queue.code, 1);
  EXPECT_THAT(of_queue.notes, ElementsAre("run 7 ('runs/x') ended: 1 of 2 tasks failed"));
  EXPECT_EQ(of_queue.pauses, 3U);
}

TEST(WaitForRuns, SaysOnceWhyTheQueueStartsNothing) {
  const EndOfWait waited = wait_through({queued(), queued("your queue is suspended"),
                                         queued("your queue drains"), over(ExitCode::Success)},
                                        2);
  EXPECT_EQ(waited.code, 0);
  EXPECT_THAT(waited.notes, ElementsAre("your queue is suspended"));
}

TEST(WaitForRuns, DoesNotWaitForARunThatNothingStarts) {
  Look down = queued("your queue is down");
  down.submission.is_served = false;
  const EndOfWait waiting = wait_through({down});
  EXPECT_EQ(waiting.code, 75);
  EXPECT_THAT(waiting.notes, ElementsAre("run 7 waits, and your queue is down"));
  down.outcome.stage = Stage::Died;
  EXPECT_EQ(wait_through({down}).code, 75);
  const EndOfWait alone = wait_through({{.outcome = {.stage = Stage::NotBegun}}});
  EXPECT_EQ(alone.code, 75);
  EXPECT_THAT(alone.notes, ElementsAre("run 7 ('runs/x') has not started"));
}

TEST(WaitForRuns, WaitsForARunWhoseQueueIsDownWhileItIsAtWork) {
  const Look runs{.submission = {.is_in_queue = true}};
  Look ended = over(ExitCode::Success);
  ended.submission.is_in_queue = true;
  const EndOfWait waited = wait_through({runs, ended});
  EXPECT_EQ(waited.code, 0);
  EXPECT_EQ(waited.pauses, 1U);
}

TEST(WaitForRuns, EndsWithASubmissionThatNeverStarts) {
  const Look skipped{.submission = {.no_start_code = 1, .why = "needs run 6"},
                     .outcome = {.stage = Stage::NotBegun}};
  const EndOfWait waited = wait_through({queued(), skipped});
  EXPECT_EQ(waited.code, 1);
  EXPECT_THAT(waited.notes, ElementsAre("run 7: needs run 6"));
}

TEST(WaitForRuns, ReadsTheJournalForHeldTasksOnceIn20Looks) {
  std::vector<Look> looks(42, Look{.held = 2});
  looks.front().held = 0;
  looks.push_back(over(ExitCode::Success));
  const EndOfWait waited = wait_through(looks);
  EXPECT_THAT(waited.notes,
              ElementsAre("run 7 ('runs/x'): only held tasks are left (2): 'trainyard release 7' "
                          "starts them"));
  EXPECT_EQ(waited.journal_readings, 2);
}

TEST(WaitForRuns, SaysOnceThatTheRunIsSuspended) {
  const EndOfWait waited =
      wait_through({{.suspended = 40}, {.suspended = 40}, over(ExitCode::Success)});
  EXPECT_THAT(
      waited.notes,
      ElementsAre("run 7 ('runs/x') is suspended, as by Ctrl-Z: 'kill -CONT 40', or 'fg' in "
                  "its terminal, resumes it"));
}

TEST(WaitForRuns, EndsWithTheErrorOfARunThatCannotBeRead) {
  const EndOfWait waited = wait_through({{.unreadable = Error{"the journal is damaged"}}});
  EXPECT_EQ(waited.code, 2);
  EXPECT_THAT(waited.notes, ElementsAre("the journal is damaged"));
}

TEST(HeldTasksAlone, AreThoseForWhichAllOthersWait) {
  EXPECT_EQ(held_of({{.tasks = 2, .cause = model::Cause::Held}}, 2), 2);
  EXPECT_EQ(held_of({{.tasks = 2, .cause = model::Cause::Held},
                     {.tasks = 3, .cause = model::Cause::Needs},
                     {.tasks = 1, .cause = model::Cause::Group}},
                    6),
            2);
}

TEST(HeldTasksAlone, AreNoneWhileAnotherTaskRunsOrMayStart) {
  const std::vector<journal::WaitingReason> held{{.tasks = 2, .cause = model::Cause::Held}};
  EXPECT_EQ(held_of(held, 2, 1), 0);
  EXPECT_EQ(held_of(held, 3), 0) << "a task has not been considered yet";
  EXPECT_EQ(held_of({{.tasks = 2, .cause = model::Cause::Held},
                     {.tasks = 1, .cause = model::Cause::Memory}},
                    3),
            0);
}

TEST(HeldTasksAlone, AreSoughtAmongTheGroupsOnlyIfATaskIsOnHold) {
  const auto unread = [] {
    ADD_FAILURE() << "the groups were read";
    return Result<std::vector<journal::GroupRow>>();
  };
  EXPECT_EQ(held_tasks_alone({}, unread), 0);
  EXPECT_EQ(held_tasks_alone({{.tasks = 2, .cause = model::Cause::Needs}}, unread), 0);
}

TEST(SubmissionsAfterOwnRun, AreThoseThatNeedItOrASubmissionThatDoes) {
  const auto own_run = [](std::uint32_t number) {
    return number == 1 ? std::optional<std::string>("/here/runs/outer") : std::nullopt;
  };
  EXPECT_THAT(submissions_after_own_run({{.number = 3, .needs = {1}},
                                         {.number = 4, .needs = {2}},
                                         {.number = 5, .needs = {2, 3}},
                                         {.number = 6}},
                                        own_run),
              ElementsAre(Pair(3U, "/here/runs/outer"), Pair(5U, "/here/runs/outer")));
  EXPECT_THAT(submissions_after_own_run({}, own_run), IsEmpty());
}

TEST(WaitWithoutEnd, NamesTheRunWhoseTaskHasStartedTheCommand) {
  EXPECT_EQ(wait_without_end("run 1", "run 1").message,
            "the wait would never end: a task of run 1 has started this command, and the run ends "
            "after it");
  EXPECT_EQ(wait_without_end("run 2", "run 1").message,
            "the wait would never end: run 2 starts after run 1, one of whose tasks has started "
            "this command");
}

}  // namespace
}  // namespace trainyard::app

#include "app/task_requests.h"

#include <utility>

#include <gtest/gtest.h>

#include "app/test_run_facts.h"
#include "link/control_client.h"

namespace trainyard::app {
namespace {

journal::TaskRow row_that_runs(std::string id, Duration signal_before_term) {
  journal::TaskRow row;
  row.group_name = "train";
  row.id = std::move(id);
  row.pid = 7;
  row.signal_before_term = signal_before_term;
  return row;
}

journal::TaskRow row_that_waits(std::string id, Duration signal_before_term) {
  journal::TaskRow row = row_that_runs(std::move(id), signal_before_term);
  row.pid = 0;
  return row;
}

constexpr model::Standing kStillRunning{.status = Status::Training};
constexpr model::Standing kKilled{.status = Status::Exception,
                                  .verdict = model::Verdict::Failed,
                                  .failure = model::Failure::Killed};

/// The tasks a and b, which run, and c, which has finished.
std::vector<journal::TaskRow> tasks_abc() {
  std::vector<journal::TaskRow> rows{test_task("train", "a", kStillRunning),
                                     test_task("train", "b", kStillRunning),
                                     test_task("train", "c")};
  for (std::uint32_t i = 0; i < rows.size(); ++i) rows[i].index = {i};
  return rows;
}

TasksOfRun selection_of(const std::vector<std::string>& patterns) {
  TasksOfRun selection;
  for (const std::string& pattern : patterns) {
    selection.patterns.push_back(text::TaskPattern::read(pattern).value());
  }
  return selection;
}

/// "a b! c!", with a mark after each task that must not have ended.
std::string chosen_to_kill(const TasksOfRun& selection, std::vector<journal::TaskRow> selected) {
  const TasksToKill to_kill = tasks_to_kill(selection, std::move(selected));
  std::string text;
  for (const journal::TaskRow& task : to_kill.tasks) {
    text += (text.empty() ? "" : " ") + task.id + (to_kill.named.contains(task.index) ? "!" : "");
  }
  return text;
}

/// The outcome for a task that was named, as "code: text".
std::string kill_text(wire::Outcome replied, const journal::TaskRow& before,
                      const journal::TaskRow& now, bool named = true) {
  const KillOutcome outcome =
      kill_outcome({.outcome = replied, .text = "the run is ending"}, before, now, named);
  return std::to_string(std::to_underlying(outcome.code)) + ": " + outcome.text;
}

journal::TaskRow with_start(journal::TaskRow row) {
  row.started = Instant{Duration{1}};
  return row;
}

TEST(KillTasks, AllAreMeantByTheRunOrByAPatternForAll) {
  EXPECT_TRUE(means_whole_run(selection_of({}), true));
  EXPECT_TRUE(means_whole_run(selection_of({"*"}), true));
  EXPECT_TRUE(means_whole_run(selection_of({"*"}), false)) << "the tasks are typed";
}

TEST(KillTasks, ARunThatIsNotTypedIsNotMeantAsAWhole) {
  EXPECT_FALSE(means_whole_run(selection_of({}), false));
}

TEST(KillTasks, APartOfTheTasksIsNotTheWholeRun) {
  EXPECT_FALSE(means_whole_run(selection_of({"train/*"}), true));
  EXPECT_FALSE(means_whole_run(selection_of({"*", "a"}), true));
  TasksOfRun failed = selection_of({"*"});
  failed.states = {report::TaskState::Failed};
  EXPECT_FALSE(means_whole_run(failed, true));
  failed.patterns.clear();
  EXPECT_FALSE(means_whole_run(failed, true));
}

TEST(KillTasks, APatternMeansTheTasksThatHaveNotEnded) {
  EXPECT_EQ(chosen_to_kill(selection_of({"train/*"}), tasks_abc()), "a b");
  EXPECT_EQ(chosen_to_kill(selection_of({}), tasks_abc()), "a b");
}

TEST(KillTasks, ATaskThatIsNamedMustNotHaveEnded) {
  EXPECT_EQ(chosen_to_kill(selection_of({"train/*", "c"}), tasks_abc()), "a b c!");
  EXPECT_EQ(chosen_to_kill(selection_of({"a"}), {tasks_abc().front()}), "a!");
}

TEST(KillTasks, APatternOfWhichAllTasksHaveEndedMustNotHaveBeenTooLate) {
  EXPECT_EQ(chosen_to_kill(selection_of({"train/*"}), {tasks_abc().back()}), "c!");
}

TEST(KillTasks, TheOutcomeSaysWhatTheTaskDidBefore) {
  const journal::TaskRow running_task = tasks_abc().front();
  const journal::TaskRow killed = with_start(test_task("train", "a", kKilled));
  EXPECT_EQ(kill_text(wire::Outcome::Done, running_task, killed), "0: train/a was killed\n");
  const journal::TaskRow waiting_task = test_task("train", "a", {.status = Status::Init});
  const journal::TaskRow skipped = test_task("train", "a", {.verdict = model::Verdict::Skipped});
  EXPECT_EQ(kill_text(wire::Outcome::Done, waiting_task, skipped), "0: train/a will not start\n");
  const journal::TaskRow retrying = test_task("train", "a", {.status = Status::Interrupt});
  EXPECT_EQ(kill_text(wire::Outcome::Done, retrying, killed), "0: train/a will not be retried\n");
  EXPECT_EQ(kill_text(wire::Outcome::Done, waiting_task, killed),
            "0: train/a will not be retried\n");
}

TEST(KillTasks, ATaskThatEndedMeanwhileIsAnErrorOnlyIfItWasNamed) {
  const journal::TaskRow before = tasks_abc().front();
  const journal::TaskRow finished = test_task("train", "a");
  EXPECT_EQ(kill_text(wire::Outcome::NotRunning, before, finished),
            "1: train/a is FINISHED: only waiting and running tasks can be killed");
  EXPECT_EQ(kill_text(wire::Outcome::NotRunning, before, with_start(finished), false), "0: ");
  EXPECT_EQ(kill_text(wire::Outcome::NotRunning, before, finished, false),
            "0: train/a will not start\n");
}

TEST(KillTasks, ATaskThatExitedBeforeTheSignalWasNotKilled) {
  const journal::TaskRow before = tasks_abc().front();
  const journal::TaskRow finished = with_start(test_task("train", "a"));
  EXPECT_EQ(kill_text(wire::Outcome::Done, before, finished),
            "1: train/a is FINISHED: only waiting and running tasks can be killed");
  EXPECT_EQ(kill_text(wire::Outcome::Done, before, finished, false), "0: ");
  const journal::TaskRow failed = with_start(test_task("train", "a",
                                                       {.status = Status::Exception,
                                                        .verdict = model::Verdict::Failed,
                                                        .failure = model::Failure::Exit,
                                                        .exit_code = 3}));
  EXPECT_EQ(kill_text(wire::Outcome::Done, before, failed),
            "1: train/a is EXIT 3: only waiting and running tasks can be killed");
  const journal::TaskRow crashed = with_start(test_task("train", "a",
                                                        {.status = Status::Exception,
                                                         .verdict = model::Verdict::Failed,
                                                         .failure = model::Failure::Crashed,
                                                         .exit_code = 139}));
  EXPECT_EQ(kill_text(wire::Outcome::Done, before, crashed),
            "1: train/a is SIGSEGV: only waiting and running tasks can be killed");
}

TEST(KillTasks, ATaskThatALimitIsEndingIsKilledAllTheSame) {
  const journal::TaskRow before = tasks_abc().front();
  for (const model::Failure cause : {model::Failure::Timeout, model::Failure::OutOfMemory}) {
    const journal::TaskRow ended = with_start(test_task(
        "train", "a",
        {.status = Status::Exception, .verdict = model::Verdict::Failed, .failure = cause}));
    EXPECT_EQ(kill_text(wire::Outcome::Done, before, ended), "0: train/a was killed\n")
        << "without the request, it might have been retried";
  }
}

TEST(KillTasks, ATaskThatItsRunWasStoppingWasNotKilled) {
  const journal::TaskRow before = tasks_abc().front();
  const journal::TaskRow stopped = with_start(
      test_task("train", "a", {.status = Status::Exception, .verdict = model::Verdict::Stopped}));
  EXPECT_EQ(kill_text(wire::Outcome::Done, before, stopped),
            "0: train/a was stopped with its run\n");
}

TEST(KillTasks, AnErrorAfterTheEndOfTheTaskIsThatItHasEnded) {
  const journal::TaskRow before = tasks_abc().front();
  EXPECT_EQ(kill_text(wire::Outcome::Error, before, test_task("train", "a")),
            "1: train/a is FINISHED: only waiting and running tasks can be killed");
  EXPECT_EQ(kill_text(wire::Outcome::Error, before, before), "1: the run is ending");
}

TEST(KillTasks, AnUnknownTaskIsAMistake) {
  const journal::TaskRow before = tasks_abc().front();
  EXPECT_EQ(kill_text(wire::Outcome::NoSuchTask, before, before), "2: the run has no task train/a");
}

TEST(KillWait, IsLongerByTheLongestTimeThatATaskHasBeforeTerm) {
  EXPECT_EQ(kill_wait_max({row_that_runs("a", Duration{0})}), Duration{30'000});
  EXPECT_EQ(
      kill_wait_max({row_that_runs("a", Duration{40'000}), row_that_runs("b", Duration{1'000})}),
      Duration{70'000});
  EXPECT_EQ(kill_wait_max({row_that_waits("a", Duration{40'000})}), Duration{70'000})
      << "the task may have started meanwhile";
}

TEST(KillWait, CountsOnceForEachGroupOfTasksThatIsAskedForAtOnce) {
  std::vector<journal::TaskRow> tasks(link::kAskedAtOnce, row_that_runs("a", Duration{40'000}));
  EXPECT_EQ(kill_wait_max(tasks), Duration{70'000});
  tasks.push_back(row_that_runs("b", Duration{0}));
  EXPECT_EQ(kill_wait_max(tasks), Duration{140'000});
}

TEST(KillWait, NoteNamesTheTimeOfRunningTasksWithASignal) {
  EXPECT_EQ(
      kill_wait_note({row_that_runs("a", Duration{0}), row_that_waits("b", Duration{40'000})}), "");
  EXPECT_EQ(
      kill_wait_note({row_that_runs("a", Duration{0}), row_that_runs("s=1", Duration{40'000})}),
      "train/s=1 has up to 40 s to save its state before SIGTERM; Ctrl-C stops only the "
      "waiting");
  EXPECT_EQ(
      kill_wait_note({row_that_runs("a", Duration{90'000}), row_that_runs("b", Duration{1'000})}),
      "2 tasks have up to 1m30s to save their state before SIGTERM; Ctrl-C stops only the "
      "waiting");
}

constexpr ChangeRequest kHold{};
constexpr ChangeRequest kRelease{.change = TaskChange::Release};
constexpr ChangeRequest kUpdate{.change = TaskChange::Priority, .priority = 5};

/// Run 7 with a task in each state: first runs, a and h are on hold, b waits, end has finished.
TestFacts run_of_all_states() {
  TestRun run = running_run(7, "runs/job");
  const model::Standing held{.status = Status::Init, .on_hold = true};
  run.tasks = {test_task("train", "first", kStillRunning), test_task("train", "a", held),
               test_task("train", "h", held), test_task("train", "b", {.status = Status::Init}),
               test_task("train", "end")};
  return TestFacts({std::move(run)});
}

Result<TasksToChange> changed_by(const ChangeRequest& request,
                                 const std::vector<std::string>& words,
                                 const Result<std::string>& socket = "/run/7") {
  const TestFacts facts = run_of_all_states();
  const TasksOfRun selection = read_selection({.words = words}, facts).value();
  return tasks_to_change(request, selection, **facts.tasks_of(selection.run), socket, facts);
}

/// "a b; not changed: ...", with a mark after tasks of which one that cannot be changed was named.
std::string change_text(const ChangeRequest& request, const std::vector<std::string>& words) {
  const Result<TasksToChange> chosen = changed_by(request, words);
  if (!chosen) return chosen.error().message;
  std::string text;
  for (const journal::TaskRow& task : chosen->tasks) text += (text.empty() ? "" : " ") + task.id;
  text += chosen->names_unchanged ? "!" : "";
  return text + (chosen->not_changed.empty() ? "" : "; " + chosen->not_changed);
}

TEST(ChangeTasks, AreTheSelectedOnesForWhichTheRequestHasAMeaning) {
  EXPECT_EQ(change_text(kHold, {"b"}), "b");
  EXPECT_EQ(change_text(kHold, {"*"}),
            "b; not changed: train/first is RUNNING, train/a is ON_HOLD, train/h is ON_HOLD, and 1 "
            "more");
  EXPECT_EQ(change_text(kRelease, {"train/a", "b"}), "a!; not changed: train/b is WAITING");
  EXPECT_EQ(change_text(kUpdate, {"*"}), "first a h b; not changed: train/end is FINISHED");
}

TEST(ChangeTasks, OfAReleaseWithoutWordsAreAllThatAreOnHold) {
  EXPECT_EQ(change_text(kRelease, {}), "a h");
  EXPECT_EQ(change_text(kHold, {}),
            "which tasks of 'runs/job'? For all of them, type: trainyard hold runs/job '*'");
}

TEST(ChangeTasks, ARefusalSaysWhyNoneCanBeChanged) {
  EXPECT_EQ(change_text(kHold, {"a"}), "train/a is on hold already");
  EXPECT_EQ(change_text(kHold, {"a", "h"}), "all of these tasks of 'runs/job' are on hold already");
  EXPECT_EQ(change_text(kHold, {"first"}),
            "train/first is RUNNING: only waiting tasks can be put on hold");
  EXPECT_EQ(change_text(kRelease, {"b"}), "train/b is WAITING: only tasks on hold can be released");
  EXPECT_EQ(change_text(kUpdate, {"end"}),
            "train/end is FINISHED: only waiting and running tasks have a priority");
  EXPECT_EQ(
      change_text(kRelease, {"first", "b"}),
      "no selected task of 'runs/job' is on hold; not changed: train/first is RUNNING, train/b "
      "is WAITING");
}

TEST(ChangeTasks, AWrongTaskIsNamedBeforeTheRunThatIsNotReached) {
  const Result<std::string> no_socket = std::unexpected(Error{"the run has ended"});
  EXPECT_EQ(changed_by(kHold, {"7", "b"}, no_socket).error().message, "the run has ended");
  EXPECT_NE(changed_by(kHold, {"7", "train/x"}, no_socket).error().message, "the run has ended");
}

TEST(ChangeTasks, TheCommandIsShownWithItsOptions) {
  EXPECT_EQ(kRelease.command(), "release");
  EXPECT_EQ(
      (ChangeRequest{.change = TaskChange::Priority, .priority = -1, .dry_run = true}.command()),
      "update --priority -1 --dry-run");
}

TEST(ChangeTasks, AreChangedByARequestForEach) {
  const journal::TaskRow task = test_task("train", "a");
  EXPECT_EQ(request_for(kHold, task),
            wire::ControlRequest(wire::Hold{.group = "train", .id = "a", .hold = true}));
  EXPECT_EQ(request_for(kRelease, task),
            wire::ControlRequest(wire::Hold{.group = "train", .id = "a", .hold = false}));
  EXPECT_EQ(request_for(kUpdate, task),
            wire::ControlRequest(wire::SetPriority{.group = "train", .id = "a", .priority = 5}));
}

TEST(ChangeTasks, TheOutcomeNamesThoseThatWereChangedAndWhyOthersWereNot) {
  const TasksToChange chosen = changed_by(kUpdate, {"first", "b"}).value();
  const ChangeOutcome both = change_outcome(kUpdate, chosen, {{}, {}});
  EXPECT_EQ(
      both.text,
      "train/first has priority 5, which counts when it is retried\ntrain/b has priority 5\n");
  EXPECT_EQ(both.code, run::ExitCode::Success);
  const ChangeOutcome late =
      change_outcome(kUpdate, chosen,
                     {{.outcome = wire::Outcome::NotRunning},
                      {.outcome = wire::Outcome::Error, .text = "the run is ending"}});
  EXPECT_EQ(late.errors, (std::vector<std::string>{"train/first has started or ended meanwhile",
                                                   "the run is ending"}));
  EXPECT_EQ(late.text, "");
  EXPECT_EQ(late.code, run::ExitCode::TaskFailed);
}

TEST(ChangeTasks, AnErrorOfTheWholeRunIsOneLine) {
  const wire::ControlReply stopping{.outcome = wire::Outcome::Error, .text = "the run is stopping"};
  const ChangeOutcome outcome =
      change_outcome(kUpdate, changed_by(kUpdate, {"first", "b"}).value(), {stopping, stopping});
  EXPECT_EQ(outcome.errors, std::vector<std::string>{"the run is stopping"});
}

TEST(ChangeTasks, ANamedTaskThatCannotBeChangedIsAnErrorAlsoIfOthersAreChanged) {
  const TasksToChange chosen = changed_by(kRelease, {"a", "b"}).value();
  const ChangeOutcome outcome = change_outcome(kRelease, chosen, {{}});
  EXPECT_EQ(outcome.text, "train/a may start\n");
  EXPECT_EQ(outcome.code, run::ExitCode::TaskFailed);
}

}  // namespace
}  // namespace trainyard::app

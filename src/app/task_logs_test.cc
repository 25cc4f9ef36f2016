#include "app/task_logs.h"

#include <gtest/gtest.h>

#include "app/test_run_facts.h"

namespace trainyard::app {
namespace {

constexpr model::Standing kSkippedTask{.verdict = model::Verdict::Skipped};

/// A task that has had this number of attempts.
journal::TaskRow logged_task(const std::string& id, std::uint32_t attempts,
                             const model::Standing& standing = {.status = Status::Training}) {
  journal::TaskRow row = test_task("train", id, standing);
  row.attempt = attempts;
  return row;
}

/// The error of the request for these tasks of runs/sweep; empty: there is none.
std::string wrong_request(const LogRequest& request, const std::vector<journal::TaskRow>& tasks,
                          bool is_all = false) {
  TasksOfRun selection{{.run = "/here/runs/sweep", .shown = "runs/sweep"}};
  if (!is_all) selection.states = {report::TaskState::Running};
  const Result<void> fits = check_log_request(request, selection, tasks);
  return fits ? std::string() : fits.error().message;
}

TEST(LogRequest, ALogOfARankIsOfOneStream) {
  const std::vector<journal::TaskRow> tasks{logged_task("a", 1)};
  const std::string wrong =
      "--rank cannot be combined with --stdout or --stderr: each rank from 1 on has one log";
  EXPECT_EQ(wrong_request({.only_stdout = true, .rank = 0}, tasks), wrong);
  EXPECT_EQ(wrong_request({.only_stderr = true, .rank = 3}, tasks), wrong);
  EXPECT_EQ(wrong_request({.rank = 3}, tasks), "");
  EXPECT_EQ(wrong_request({.only_stdout = true, .only_stderr = true}, tasks), "");
}

TEST(LogRequest, OnlyOneTaskIsFollowed) {
  const std::vector<journal::TaskRow> tasks{logged_task("lr=0.1", 1), logged_task("lr=0.2", 1)};
  EXPECT_EQ(wrong_request({.follow = true}, tasks),
            "only one task can be followed at a time; name one, as in 'trainyard logs runs/sweep "
            "train/lr=0.1 -f'");
  EXPECT_EQ(wrong_request({.follow = true}, {tasks.front()}), "");
}

TEST(LogRequest, SeveralTasksMustBeNamed) {
  const std::vector<journal::TaskRow> tasks{logged_task("a", 1), logged_task("b", 1)};
  EXPECT_EQ(wrong_request({}, tasks, true),
            "which of the 2 tasks of 'runs/sweep'? For all of them, type: trainyard logs "
            "runs/sweep '*'");
  EXPECT_EQ(wrong_request({}, tasks), "");
  EXPECT_EQ(wrong_request({}, {tasks.front()}, true), "");
}

TEST(WhyNoLog, ATaskWithThisAttemptHasALog) {
  EXPECT_EQ(why_no_log({}, logged_task("a", 1)), "");
  EXPECT_EQ(why_no_log({.attempt = 2}, logged_task("a", 2)), "");
}

TEST(WhyNoLog, AnAttemptThatWasNotMadeHasNone) {
  EXPECT_EQ(why_no_log({.attempt = 3}, logged_task("a", 1)), "train/a has had 1 attempt");
  EXPECT_EQ(why_no_log({.attempt = 3}, logged_task("a", 2)), "train/a has had 2 attempts");
}

TEST(WhyNoLog, ATaskThatWaitsHasNoneUnlessItIsFollowed) {
  EXPECT_EQ(why_no_log({}, logged_task("a", 0, {})), "train/a has not started");
  EXPECT_EQ(why_no_log({.follow = true}, logged_task("a", 0, {})), "");
  EXPECT_EQ(why_no_log({.attempt = 1, .follow = true}, logged_task("a", 0, {})),
            "train/a has not started");
}

TEST(WhyNoLog, ATaskThatEndedBeforeItStartedSaysWhy) {
  journal::TaskRow task = logged_task("a", 0, kSkippedTask);
  EXPECT_EQ(why_no_log({.follow = true}, task), "train/a did not start and is SKIPPED");
  task.message = "needs group 'prepare'";
  EXPECT_EQ(why_no_log({}, task), "train/a did not start and is SKIPPED: needs group 'prepare'");
}

TEST(WhyNoLog, OfSeveralTasksThreeAreNamed) {
  std::vector<journal::TaskRow> tasks{logged_task("a", 0, {}), logged_task("b", 1),
                                      logged_task("c", 0, {})};
  EXPECT_EQ(none_has_log({.attempt = 2}, tasks),
            "no selected task has such a log: train/a has not started, train/b has had 1 attempt, "
            "train/c has not started");
  tasks.push_back(logged_task("d", 1));
  EXPECT_TRUE(none_has_log({.attempt = 2}, tasks).ends_with("train/c has not started, and 1 more"));
}

TEST(NoteAfterLogs, OutputNeedsNone) {
  const journal::TaskRow task = logged_task("a", 1);
  EXPECT_EQ(note_after_logs({}, task, task, {.have_text = true, .have_file = true}), "");
}

TEST(NoteAfterLogs, ATaskThatCouldNotStartSaysWhyWhateverWasPrinted) {
  journal::TaskRow task = logged_task(
      "a", 2, {.verdict = model::Verdict::Failed, .failure = model::Failure::CannotStart});
  task.message = "no such file";
  const ShownLogs shown{.have_text = true, .have_file = true};
  EXPECT_EQ(note_after_logs({}, task, task, shown), "train/a did not start: no such file");
  EXPECT_EQ(note_after_logs({.attempt = 2}, task, task, shown),
            "train/a did not start: no such file");
  EXPECT_EQ(note_after_logs({.attempt = 1}, task, task, shown), "")
      << "an earlier attempt may have started";
}

TEST(NoteAfterLogs, ATaskThatRunsHasNoOutputYet) {
  const journal::TaskRow task = logged_task("a", 2);
  EXPECT_EQ(note_after_logs({}, task, task, {.have_file = true}), "train/a: no output yet");
  EXPECT_EQ(note_after_logs({.attempt = 1}, task, task, {.have_file = true}), "train/a: no output");
  EXPECT_EQ(note_after_logs({.follow = true}, task, task, {.have_file = true}),
            "train/a: no output")
      << "it was followed to the end";
}

TEST(NoteAfterLogs, ATaskThatEndedWithoutOutputSaysSo) {
  const journal::TaskRow task = test_task("train", "a");
  EXPECT_EQ(note_after_logs({}, task, task, {.have_file = true}), "train/a: no output");
}

TEST(NoteAfterLogs, ALogThatIsGoneIsNamed) {
  const journal::TaskRow task = test_task("train", "a");
  EXPECT_EQ(note_after_logs({}, task, task, {}),
            "train/a: its log was deleted, as by 'trainyard clean', or is on another machine");
  EXPECT_TRUE(is_log_gone({}, task, task, {}));
  EXPECT_FALSE(is_log_gone({}, task, task, {.have_file = true}));
  EXPECT_FALSE(is_log_gone({}, task, task, {.have_text = true}));
  const journal::TaskRow failed = logged_task(
      "a", 1, {.verdict = model::Verdict::Failed, .failure = model::Failure::CannotStart});
  EXPECT_FALSE(is_log_gone({}, failed, failed, {})) << "it never had one";
}

TEST(NoteAfterLogs, ALogThatMayStillComeIsNotGone) {
  const journal::TaskRow task = logged_task("a", 2);
  EXPECT_FALSE(is_log_gone({}, task, task, {}));
  EXPECT_TRUE(is_log_gone({.attempt = 1}, task, task, {}));
  EXPECT_TRUE(is_log_gone({.follow = true}, task, task, {})) << "it was followed to the end";
  const journal::TaskRow waiting_task = logged_task("a", 0, {});
  EXPECT_FALSE(is_log_gone({.follow = true}, waiting_task, waiting_task, {}));
}

TEST(NoteAfterLogs, AFollowedTaskThatNeverStartedSaysWhatBecameOfIt) {
  const journal::TaskRow before = logged_task("a", 0, {});
  EXPECT_EQ(note_after_logs({.follow = true}, before, logged_task("a", 0, kSkippedTask), {}),
            "train/a: did not start and is SKIPPED");
}

}  // namespace
}  // namespace trainyard::app

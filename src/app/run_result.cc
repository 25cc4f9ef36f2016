#include "app/run_result.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include <fmt/format.h>

#include "model/status.h"
#include "model/waiting.h"
#include "report/terminal_text.h"
#include "run/run_directory.h"
#include "text/shell_quote.h"

namespace trainyard::app {
namespace {

/// The counts of all groups.
journal::GroupRow sum_of(const std::vector<journal::GroupRow>& groups) {
  journal::GroupRow sum;
  for (const journal::GroupRow& group : groups) {
    sum.tasks += group.tasks;
    sum.finished += group.finished;
    sum.failed += group.failed;
    sum.skipped += group.skipped;
    sum.not_needed += group.not_needed;
    sum.not_selected += group.not_selected;
    sum.stopped += group.stopped;
  }
  return sum;
}

/// The exit code of the only task of a run, if it exited with an error by itself.
std::optional<int> code_of_one_task(const std::vector<journal::TaskRow>& first_tasks) {
  if (first_tasks.size() != 1) return std::nullopt;
  const model::Standing& standing = first_tasks.front().standing;
  const bool own = standing.verdict == model::Verdict::Failed && standing.exit_code > 0;
  return own ? std::optional(standing.exit_code) : std::nullopt;
}

/// `code` as of `trainyard run`.
RunEnd end_by_code(int code) {
  const auto is = [code](run::ExitCode other) { return code == static_cast<int>(other); };
  const bool lacks_something =
      is(run::ExitCode::NotDone) || is(run::ExitCode::Interrupted) || is(run::ExitCode::Terminated);
  return {.code = code, .task_failed = code != 0 && !lacks_something};
}

std::string held_note(const KnownRun& run, int held) {
  if (held == 0) return {};
  return fmt::format("{}: only held tasks are left ({}): {} starts them", run.name(), held,
                     text::quoted_command("trainyard release " + run.own_word()));
}

std::string suspension_note(const KnownRun& run, std::optional<std::int64_t> process) {
  if (!process) return {};
  return fmt::format(
      "{} is suspended, as by Ctrl-Z: 'kill -CONT {}', or 'fg' in its terminal, resumes it",
      run.name(), *process);
}

/// `is_queue_noted`: whether the wait has said why the queue starts nothing.
RunEnd wait_for_run(const std::string& run, const WaitFacts& facts, bool& is_queue_noted) {
  using Stage = run::RunOutcome::Stage;
  // A journal is read once a second.
  constexpr int kLooksPerReading = 20;
  // Read once, as all of the user's runs are read for it.
  const KnownRun known = facts.named(run);
  bool is_hold_noted = false;
  bool is_suspension_noted = false;
  const auto note_once = [&facts](bool& is_noted, const auto& read_reason) {
    if (is_noted) return;
    const std::string why = read_reason();
    is_noted = !why.empty();
    if (is_noted) facts.note(why);
  };
  const auto refuse = [&facts](std::string_view why, run::ExitCode code) {
    facts.note(why);
    return end_by_code(static_cast<int>(code));
  };
  for (int looks = 0;; facts.pause()) {
    const WaitedSubmission submission = facts.submission(known.number);
    if (submission.no_start_code) {
      facts.note(fmt::format("run {}: {}", known.number, submission.why));
      return end_by_code(*submission.no_start_code);
    }
    // The queue says when the run has ended.
    const bool goes_on = submission.is_in_queue && submission.is_served;
    // The outcome of a run that waits costs a scan of all processes.
    if (goes_on && !facts.is_locked(run)) {
      note_once(is_queue_noted, facts.why_nothing_begins);
      continue;
    }
    const Result<run::RunOutcome> outcome = facts.outcome(run);
    if (outcome && outcome->stage == Stage::AtWork) {
      if (std::exchange(looks, (looks + 1) % kLooksPerReading) == 0) {
        note_once(is_hold_noted, [&] { return held_note(known, facts.held_alone(run)); });
      }
      note_once(is_suspension_noted, [&] { return suspension_note(known, facts.suspended(run)); });
      continue;
    }
    if (submission.is_in_queue && !goes_on && !(outcome && outcome->stage == Stage::Over)) {
      return refuse(fmt::format("run {} waits, and {}", known.number, facts.why_nothing_begins()),
                    run::ExitCode::NotDone);
    }
    if (!outcome) return refuse(outcome.error().message, run::ExitCode::Usage);
    // A run of the queue that has died is resumed.
    if (goes_on) continue;
    if (outcome->stage == Stage::NotBegun) {
      return refuse(known.name() + " has not started", run::ExitCode::NotDone);
    }
    const RunEnd end = end_of(*outcome);
    if (end.code != 0) facts.note(fmt::format("{} ended: {}", known.name(), outcome->why));
    return end;
  }
}

}  // namespace

run::ExitCode exit_code_of(const std::vector<journal::GroupRow>& groups) {
  const journal::GroupRow sum = sum_of(groups);
  if (sum.failed + sum.skipped > 0) return run::ExitCode::TaskFailed;
  const bool is_done = sum.finished + sum.not_needed + sum.not_selected == sum.tasks;
  return is_done ? run::ExitCode::Success : run::ExitCode::NotDone;
}

std::string shortfall_text(const std::vector<journal::GroupRow>& groups) {
  const journal::GroupRow sum = sum_of(groups);
  const std::string of_all = "of " + report::counted(sum.tasks, "task");
  if (sum.failed > 0) {
    return fmt::format("{} {} failed{}", sum.failed, of_all,
                       sum.skipped > 0 ? fmt::format(", {} skipped", sum.skipped) : "");
  }
  if (sum.skipped > 0) return fmt::format("{} {} skipped", sum.skipped, of_all);
  return fmt::format("{} {} finished{}", sum.finished, of_all,
                     sum.stopped > 0 ? fmt::format(", {} stopped", sum.stopped) : "");
}

run::RunOutcome outcome_of_inactive(const InactiveRun& run) {
  using Stage = run::RunOutcome::Stage;
  if (run.executions.empty() || !run.executions.back().ended) {
    return {.stage = Stage::Died, .why = "it died; " + run.way_on};
  }
  const std::string& how = run.executions.back().how;
  if (run.executions.back().is_interrupted()) {
    return {
        .stage = Stage::Interrupted,
        .code = how == run::kTerminated ? run::ExitCode::Terminated : run::ExitCode::Interrupted,
        .why = fmt::format("{}; {}", how, run.way_on)};
  }
  const bool lacks_something = how.starts_with(run::kNotAllDone);
  run::RunOutcome outcome{.stage = Stage::Over, .why = how};
  if (how != run::kEnded && !lacks_something) return outcome;
  const run::ExitCode code = exit_code_of(run.groups);
  if (!lacks_something || code != run::ExitCode::Success) outcome.code = code;
  outcome.task_code = code_of_one_task(run.first_tasks);
  if (lacks_something) return outcome;
  outcome.why = shortfall_text(run.groups);
  if (code == run::ExitCode::NotDone) outcome.why += "; " + run.way_on;
  return outcome;
}

RunEnd end_of(const run::RunOutcome& outcome) {
  if (outcome.task_code) return {.code = *outcome.task_code, .task_failed = true};
  return end_by_code(static_cast<int>(outcome.code));
}

int wait_code(const std::vector<RunEnd>& ends, bool names_none) {
  const auto succeeded = [](const RunEnd& end) { return end.code == 0; };
  const bool others_succeeded = std::ranges::all_of(ends | std::views::drop(1), succeeded);
  if (ends.size() == 1 || (names_none && others_succeeded)) return ends.front().code;
  if (std::ranges::any_of(ends, &RunEnd::task_failed)) {
    return static_cast<int>(run::ExitCode::TaskFailed);
  }
  const bool all_succeeded = others_succeeded && succeeded(ends.front());
  return static_cast<int>(all_succeeded ? run::ExitCode::Success : run::ExitCode::NotDone);
}

int held_tasks_alone(const std::vector<journal::WaitingReason>& waiting,
                     const std::function<Result<std::vector<journal::GroupRow>>()>& groups) {
  int held = 0;
  int left = 0;
  for (const journal::WaitingReason& reason : waiting) {
    const model::Cause cause = reason.cause;
    const bool waits_for_others = cause == model::Cause::Group || cause == model::Cause::Needs;
    if (cause != model::Cause::Held && !waits_for_others) return 0;
    if (!waits_for_others) held += reason.tasks;
    left -= reason.tasks;
  }
  if (held == 0) return 0;
  const Result<std::vector<journal::GroupRow>> rows = groups();
  if (!rows) return 0;
  for (const journal::GroupRow& group : *rows) {
    if (group.running > 0) return 0;
    left += group.waiting + group.retrying;
  }
  // A task without a reason has not been considered yet.
  return left == 0 ? held : 0;
}

int wait_for_runs(const std::vector<std::string>& runs, bool names_none, const WaitFacts& facts) {
  bool is_queue_noted = false;
  std::vector<RunEnd> ends;
  ends.reserve(runs.size());
  for (const std::string& run : runs) ends.push_back(wait_for_run(run, facts, is_queue_noted));
  return wait_code(ends, names_none);
}

std::map<std::uint32_t, std::string> submissions_after_own_run(
    const std::vector<queue::QueuedSubmission>& waiting,
    const std::function<std::optional<std::string>(std::uint32_t number)>& own_run) {
  std::map<std::uint32_t, std::string> later;
  // In order: a submission only needs older runs, perhaps those of other submissions.
  for (const queue::QueuedSubmission& submission : waiting) {
    for (const std::uint32_t needed : submission.needs) {
      if (const auto found = later.find(needed); found != later.end()) {
        later.emplace(submission.number, found->second);
      }
      if (const auto run = own_run(needed)) later.emplace(submission.number, *run);
    }
  }
  return later;
}

Error wait_without_end(const std::string& run, const std::string& later) {
  if (later == run) {
    return Error{
        fmt::format("the wait would never end: a task of {} has started this command, and the run "
                    "ends after it",
                    run)};
  }
  return Error{fmt::format(
      "the wait would never end: {} starts after {}, one of whose tasks has started this command",
      run, later)};
}

}  // namespace trainyard::app

#include "app/run_result.h"

#include <algorithm>
#include <ranges>

#include <fmt/format.h>

#include "model/status.h"
#include "model/waiting.h"
#include "report/terminal_text.h"
#include "run/run_directory.h"

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

RunEnd end_by_code(int code) {
  const auto is = [code](run::ExitCode other) { return code == static_cast<int>(other); };
  const bool lacks_something =
      is(run::ExitCode::NotDone) || is(run::ExitCode::Interrupted) || is(run::ExitCode::Terminated);
  return {.code = code, .task_failed = code != 0 && !lacks_something};
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

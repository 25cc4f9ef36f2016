// The result of a run that has ended, from the counts of its groups, and of the wait for runs. Pure;
// any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "journal/reader.h"
#include "queue/rules/queue_choice.h"
#include "run/run_outcome.h"

namespace trainyard::app {

/// 1 if a task failed or was skipped, else 75 if one has not finished: a retry of some tasks of an
/// interrupted run leaves the others STOPPED.
run::ExitCode exit_code_of(const std::vector<journal::GroupRow>& groups);

/// "1 of 6 tasks failed, 2 skipped", "1 of 6 tasks finished, 5 stopped".
std::string shortfall_text(const std::vector<journal::GroupRow>& groups);

/// A run that has begun and is not active, from its journal.
struct InactiveRun {
  std::vector<journal::ExecutionRow> executions;
  std::vector<journal::GroupRow> groups;      ///< Not needed if it died or was interrupted.
  std::vector<journal::TaskRow> first_tasks;  ///< The first two, as far as there are; as `groups`.
  std::string way_on;                         ///< "'trainyard run --resume runs/x' resumes it"
};

run::RunOutcome outcome_of_inactive(const InactiveRun& run);

/// The end of a run that was waited for.
struct RunEnd {
  int code = 0;  ///< The exit code of the run, or of its one task.
  bool task_failed = false;
};

/// `code` as of `trainyard run`.
RunEnd end_by_code(int code);
RunEnd end_of(const run::RunOutcome& outcome);

/// The exit code of a wait for at least one run. If no run was named, it is that of the first run,
/// which is the newest, unless another one did not succeed.
int wait_code(const std::vector<RunEnd>& ends, bool names_none);

/// The number of tasks of a run on hold, if all other remaining tasks wait for these; else 0. Calls
/// `groups`, which may read each task, only if some are on hold.
int held_tasks_alone(const std::vector<journal::WaitingReason>& waiting,
                     const std::function<Result<std::vector<journal::GroupRow>>()>& groups);

/// The submissions, by number, that start after a run has ended which this command is part of; each
/// with that run. `waiting` is in the order of the numbers, and `own_run` returns the run of a number
/// if this command is part of it.
std::map<std::uint32_t, std::string> submissions_after_own_run(
    const std::vector<queue::QueuedSubmission>& waiting,
    const std::function<std::optional<std::string>(std::uint32_t number)>& own_run);

/// The error that `run` cannot end before `later`, which this command is part of: names of runs.
Error wait_without_end(const std::string& run, const std::string& later);

}  // namespace trainyard::app

// The result of a run that has ended, from the counts of its groups, and the wait for runs. Pure; any
// thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/run_facts.h"
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

RunEnd end_of(const run::RunOutcome& outcome);

/// The exit code of a wait for at least one run. If no run was named, it is that of the first run,
/// which is the newest, unless another one did not succeed.
int wait_code(const std::vector<RunEnd>& ends, bool names_none);

/// The number of tasks of a run on hold, if all other remaining tasks wait for these; else 0. Calls
/// `groups`, which may read each task, only if some are on hold.
int held_tasks_alone(const std::vector<journal::WaitingReason>& waiting,
                     const std::function<Result<std::vector<journal::GroupRow>>()>& groups);

/// A submission as the queue has it.
struct WaitedSubmission {
  bool is_in_queue = false;               ///< It waits, or has begun and has not ended.
  bool is_served = false;                 ///< A process serves the queue.
  std::optional<int> no_start_code = {};  ///< The exit code of one that ended before it began.
  std::string why = {};                   ///< The reason of that end, for users.
};

/// The machine for a wait: what is there at each call, and the output. A run is its directory.
struct WaitFacts {
  std::function<KnownRun(const std::string& run)> named;  ///< The number and the names of the run.
  std::function<WaitedSubmission(std::uint32_t number)> submission;
  /// The reason why the queue starts nothing; empty if it starts runs.
  std::function<std::string()> why_nothing_begins;
  std::function<bool(const std::string& run)> is_locked;  ///< Cheaper than the outcome.
  std::function<Result<run::RunOutcome>(const std::string& run)> outcome;
  std::function<int(const std::string& run)> held_alone;  ///< held_tasks_alone() of its journal.
  /// The process of the run if that is suspended.
  std::function<std::optional<std::int64_t>(const std::string& run)> suspended;
  std::function<void(std::string_view message)> note;
  std::function<void()> pause;  ///< Lets 50 ms pass.
};

/// Waits until each of these runs, at least one, has ended, and returns wait_code(). Notes why a run
/// did not succeed, and once why the wait does not end: the queue starts nothing, only held tasks are
/// left, or the run is suspended. A run that its queue resumes has not ended; one that waits in a
/// queue that is not served is not waited for.
int wait_for_runs(const std::vector<std::string>& runs, bool names_none, const WaitFacts& facts);

/// The submissions, by number, that start after a run has ended which this command is part of; each
/// with that run. `waiting` is in the order of the numbers, and `own_run` returns the run of a number
/// if this command is part of it.
std::map<std::uint32_t, std::string> submissions_after_own_run(
    const std::vector<queue::QueuedSubmission>& waiting,
    const std::function<std::optional<std::string>(std::uint32_t number)>& own_run);

/// The error that `run` cannot end before `later`, which this command is part of: names of runs.
Error wait_without_end(const std::string& run, const std::string& later);

}  // namespace trainyard::app

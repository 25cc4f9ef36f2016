// The tasks that `trainyard retry` retries, in which order and with what, or the reason why none.
// Pure: the command reads the facts, prints the plan and carries it out.
//
//   Result<RetryPlan> plan = plan_retry(request, selection, *read_amounts(request), facts);
//   answer(plan_text(*plan, selection.shown));  // --dry-run
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "app/retry_amounts.h"
#include "app/run_facts.h"
#include "app/task_selection.h"
#include "base/result.h"
#include "job/jobs.h"
#include "journal/reader.h"
#include "wire/control.h"

namespace trainyard::app {

/// The command that runs tasks of a run again, in another run.
struct NewRunCommand {
  std::string command;
  bool is_of_command = false;  ///< The run is one of a command, which is typed again.
};

/// The run of the selected tasks. The functions read further files, and are called only where the
/// answer matters.
struct RetryFacts {
  const RunFacts& runs;
  RunTasks& tasks;
  std::vector<journal::GroupRow> groups;
  std::vector<journal::TaskNeedRow> needs;
  bool is_active = false;
  bool has_ended = false;  ///< The journal has its end. Neither this nor active: it died.
  std::function<bool()> has_succeeded;
  std::function<bool()> is_resumed_by_queue;
  /// "this run started before run 1, which it needs, ran again: ...", with the cure, if all of the
  /// run is out of date; else empty. An error where that cannot be read now.
  std::function<Result<std::string>()> why_out_of_date;
  /// Row numbers of the tasks of a run that has ended that were edited in the job file.
  std::function<Result<std::set<std::uint32_t>>()> edited_tasks;
  /// For all tasks, or those of some patterns. Nothing if no command line starts them again.
  std::function<std::optional<NewRunCommand>(const std::vector<std::string>& only)> new_run;
  /// The jobs of a run that uses only this machine; null if that is not known.
  std::function<const job::Jobs*()> jobs;
};

struct RetryPlan {
  /// In the order in which they start. Empty: no task of the run failed.
  std::vector<journal::TaskRow> tasks = {};
  RequestedAmounts amounts;
  /// The reason why selected tasks that may have finished run again: ", and changed since". Empty:
  /// they have not finished.
  std::string_view reason = {};
  /// The tasks with this reason. The others run again because of tasks that they need.
  std::set<model::TaskIndex> selected = {};
  /// Selected tasks that are not retried, as far as a word names them by their id.
  std::vector<journal::TaskRow> not_retried = {};
};

/// Refuses words and options about tasks for a submission without tasks: it has not started, or
/// waits in the queue to run again.
Result<void> check_no_tasks(const RetryRequest& request, const TasksOfRun& selection,
                            bool is_queued, const RunFacts& runs);

/// An error if none of the selected tasks can be retried, or one not without others. Without words,
/// the failed tasks are selected; of a run without any the plan is empty.
Result<RetryPlan> plan_retry(const RetryRequest& request, TasksOfRun selection,
                             RequestedAmounts amounts, const RetryFacts& facts);

/// Whether an empty plan is carried out, as submissions that need the run go back into the queue:
/// the run has succeeded, or still may. The error says that no task failed, and how the others run.
Result<void> check_empty_plan(const RetryRequest& request, TasksOfRun selection,
                              const RetryFacts& facts, bool has_submissions);

/// Lists the tasks with their outcomes: "2 tasks of 'runs/sweep' with a time limit of 2h:", and a
/// line for each of the first 20. Empty for an empty plan.
std::string plan_text(const RetryPlan& plan, std::string_view run);

/// A request for each task. None if all have finished and run again for a reason: a resumed run
/// starts them by itself.
std::vector<wire::Retry> requests_of(const RetryPlan& plan);

/// A checkpoint directory that a task starts without, and its new name.
struct CheckpointRename {
  std::size_t task = 0;  ///< Its place in the plan.
  std::string from;      ///< "<run>/train/lr=1/checkpoints"
  std::string to;        ///< The first free one of "<run>/train/lr=1/checkpoints.1", ".2", ...
};
/// The directories on the disk, by their paths.
struct DirectoryFacts {
  std::function<bool(const std::string& path)> has_files;
  std::function<bool(const std::string& path)> exists;
};
/// The renames for --fresh, without the tasks that have no checkpoints.
std::vector<CheckpointRename> checkpoint_renames(const RetryPlan& plan, const std::string& run,
                                                 const DirectoryFacts& facts);

/// The answers of an active run to these requests.
struct RetryAnswers {
  std::vector<std::size_t> refused = {};  ///< Places of the tasks in the plan.
  Error reasons = {};                     ///< A line for each reason; empty if none is refused.
  bool is_unknown = false;                ///< The run does not have the first refused task.
};
RetryAnswers read_answers(const RetryPlan& plan, const std::vector<wire::ControlReply>& replies,
                          std::string_view run);

}  // namespace trainyard::app

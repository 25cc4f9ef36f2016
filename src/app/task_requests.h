// The decisions of the commands that send requests about tasks to an active run: `trainyard kill`,
// `hold`, `release` and `update`. They choose the tasks, and say what came of it. Pure; any thread.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "app/task_selection.h"
#include "base/result.h"
#include "base/time.h"
#include "journal/reader.h"
#include "model/ids.h"
#include "run/run_outcome.h"
#include "wire/control.h"

namespace trainyard::app {

/// Whether the run is meant as a whole, as 46 and 46/* do. `is_typed` is false for the run that is
/// taken without a name.
bool means_whole_run(const TasksOfRun& selection, bool is_typed);

struct TasksToKill {
  std::vector<journal::TaskRow> tasks;
  std::set<model::TaskIndex> named;  ///< An error if one of them has ended.
};

/// The selected tasks that have not ended, and those that are named by their id. All of them if all
/// have ended.
TasksToKill tasks_to_kill(const TasksOfRun& selection, std::vector<journal::TaskRow> selected);

/// The refusal of a named task that has ended, or was never to run.
std::string kill_refusal(const journal::TaskRow& task);

struct KillOutcome {
  std::string text = {};  ///< Empty: nothing to say. An error unless the code is 0.
  run::ExitCode code = run::ExitCode::Success;
};

/// The outcome for a task, from the reply of its run. `before` is the task when the request was
/// sent, `now` after the reply. A task that has ended meanwhile, by itself or as one that needs a
/// killed task does, is an error only if it was named.
KillOutcome kill_outcome(const wire::ControlReply& reply, const journal::TaskRow& before,
                         const journal::TaskRow& now, bool named);

/// The time in which all of these tasks must have ended. For each group of tasks that one request
/// kills it is the longest time until SIGTERM, plus 30 s.
Duration kill_wait_max(const std::vector<journal::TaskRow>& tasks);

/// "train/s=1 has up to 40 s to save its state before SIGTERM; Ctrl-C stops only the waiting", or
/// "3 tasks have up to ..." with the longest of their times. Empty if no running task has a signal
/// before SIGTERM.
std::string kill_wait_note(const std::vector<journal::TaskRow>& tasks);

/// The requests of `hold`, `release` and `update`.
enum class TaskChange : std::uint8_t { Hold, Release, Priority };

struct ChangeRequest {
  TaskChange change = TaskChange::Hold;
  int priority = 0;  ///< The new one, for TaskChange::Priority.
  bool dry_run = false;

  /// The words before the tasks: "update --priority 5".
  [[nodiscard]] std::string command() const;
};

struct TasksToChange {
  std::vector<journal::TaskRow> tasks = {};
  /// For users: the selected tasks that cannot be changed; may be empty.
  std::string not_changed = {};
  bool names_unchanged = false;  ///< One of those is named by its id.
};

/// The selected tasks that can be changed; for a release without words all that are on hold. An error
/// if there are none, or if the tasks must be named. `socket` is that of the run: its error comes
/// after those of the selected words.
Result<TasksToChange> tasks_to_change(const ChangeRequest& request, TasksOfRun selection,
                                      RunTasks& tasks, const Result<std::string>& socket,
                                      const RunFacts& facts);

wire::ControlRequest request_for(const ChangeRequest& request, const journal::TaskRow& task);

struct ChangeOutcome {
  std::vector<std::string> errors = {};  ///< The reasons why tasks were not changed, a line each.
  std::string text = {};                 ///< The tasks that were.
  run::ExitCode code = run::ExitCode::Success;
};

/// The outcome for these tasks, from a reply for each.
ChangeOutcome change_outcome(const ChangeRequest& request, const TasksToChange& chosen,
                             const std::vector<wire::ControlReply>& replies);

}  // namespace trainyard::app

// The tasks in which a command was typed, where trainyard was started by a task of another run.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "job/job.h"
#include "model/resources.h"

namespace trainyard::cli {

/// The name of a task that this process runs in, from the environment of the task.
struct OuterTaskName {
  std::string run_directory;
  std::string group;
  std::string id;

  friend bool operator==(const OuterTaskName&, const OuterTaskName&) = default;
};

/// The task of this process, the task in which the run of that task was started, and so on. Empty
/// outside of tasks. To be called before the variables of the task are taken out of the environment
/// (sys::OwnEnvironment). In a task it reads /proc.
std::vector<OuterTaskName> outer_task_names();

/// Whether the tasks of the job fit on this machine next to the reservations of the outer tasks, as
/// the journals of their runs say. An error names the group and the outer tasks. A task that its
/// journal does not have, or whose journal cannot be read, counts as one without reservations.
/// Opens a database for each.
Result<void> check_fits_beside(const std::vector<OuterTaskName>& outer, const job::Job& job,
                               const model::Capacity& here);

/// Whether the runs that are submissions in this user's queue, run on this machine alone, and have
/// not started a task yet fit next to the reservations of the outer tasks. An error names the first
/// run that does not fit. Call it while there is one thread: it forks the process that reads the
/// GPUs.
Result<void> check_submissions_fit_beside(const std::vector<OuterTaskName>& outer,
                                          const std::vector<std::string>& runs);

}  // namespace trainyard::cli

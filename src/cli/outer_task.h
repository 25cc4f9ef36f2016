// The tasks in which a command was typed, where trainyard was started by a task of another run.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "job/job.h"
#include "model/resources.h"

namespace trainyard::cli {

/// As the environment of the task names it.
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

/// Whether the tasks of the job fit on this machine next to what the outer tasks hold together, as
/// the journals of their runs say. An error names the group and the outer tasks. A task that its
/// journal does not have, or of which the journal cannot be read, counts as one that holds nothing.
/// Opens a database for each.
Result<void> check_fits_beside(const std::vector<OuterTaskName>& outer, const job::Job& job,
                               const model::Capacity& here);

/// The same of those of these runs that are submissions in the queue of this user, on this machine
/// alone, and have not started a task yet. An error names the first that does not fit. To be called
/// while there is one thread: it forks the process that looks at the GPUs.
Result<void> check_submissions_fit_beside(const std::vector<OuterTaskName>& outer,
                                          const std::vector<std::string>& runs);

}  // namespace trainyard::cli

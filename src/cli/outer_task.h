// The task in which a command was typed, where trainyard was started by a task of another run.
#pragma once

#include <optional>
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
};

/// Nothing outside of tasks. To be called before the variables of the task are taken out of the
/// environment (sys::OwnEnvironment).
std::optional<OuterTaskName> outer_task_name();

/// Whether the tasks of the job fit on this machine next to what the outer task holds, as the
/// journal of its run says. An error names both. Where the journal cannot be read, or does not
/// know the task, nothing is wrong. Opens a database.
Result<void> check_fits_beside(const OuterTaskName& outer, const job::Job& job,
                               const model::Capacity& here);

/// The same of those of these runs that are submissions in the queue of this user, on this machine
/// alone, and have not started a task yet. An error names the first that does not fit. To be called
/// while there is one thread: it forks the process that looks at the GPUs.
Result<void> check_submissions_fit_beside(const OuterTaskName& outer,
                                          const std::vector<std::string>& runs);

}  // namespace trainyard::cli

// What a run would do, without doing it, for people: every task with its command, directory,
// environment and request, and what the machine allows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "job/job.h"
#include "model/plan.h"

namespace trainyard::report {

/// What is different where a run is resumed.
struct ResumedPlan {
  model::Plan plan;                ///< The job's, with `before` and `first_attempt`.
  std::vector<std::string> notes;  ///< What is kept and what has changed, for people.
};

/// At most `tasks_max` tasks are shown, and none that has finished before; the rest is a count. A
/// task that is like the one before it in all but its command, files and environment is one line. `resumed` is for a run that is resumed. `command` is shown in the place of the job file;
/// empty: the job has a file.
std::string dry_run_text(const job::Job& job, std::int64_t tasks_max,
                         const ResumedPlan* resumed = nullptr, const std::string& command = {});

}  // namespace trainyard::report

// A dry run for people and for programs: every task with its command, directory, environment and
// request, and the amounts that the machine allows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "job/job.h"
#include "model/plan.h"

namespace trainyard::report {

/// The differences if a run is resumed.
struct ResumedPlan {
  model::Plan plan;                ///< The job's, with `before` and `first_attempt`.
  std::vector<std::string> notes;  ///< For people: the tasks that are kept, and the changes.
};

/// At most `tasks_max` tasks are shown, and none that has finished before; the rest is a count. A
/// task that is like the one before it in all but its command, files and environment is one line.
/// `resumed` is for a run that is resumed. `command` is shown in the place of the job file; empty:
/// the job has a file.
std::string dry_run_text(const job::Job& job, std::int64_t tasks_max,
                         const ResumedPlan* resumed = nullptr, const std::string& command = {});

/// The same facts as one JSON object.
std::string dry_run_json(const job::Job& job, std::int64_t tasks_max,
                         const ResumedPlan* resumed = nullptr, const std::string& command = {});

}  // namespace trainyard::report

// A dry run for programs: the facts of dry_run_text() as one JSON object.
#pragma once

#include <cstdint>
#include <string>

#include "job/job.h"
#include "report/dry_run.h"

namespace trainyard::report {

/// The arguments are those of dry_run_text.
std::string dry_run_json(const job::Job& job, std::int64_t tasks_max,
                         const ResumedPlan* resumed = nullptr, const std::string& command = {});

}  // namespace trainyard::report

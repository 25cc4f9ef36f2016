// What a run would do, without doing it: every task with its command, directory, environment and
// request, and what the machine allows. Text for people, JSON for programs.
#pragma once

#include <cstdint>
#include <string>

#include "config/job.h"

namespace trainyard {

/// At most `tasks_max` tasks are written out; the rest is a count.
std::string dry_run_text(const Job& job, std::int64_t tasks_max);
std::string dry_run_json(const Job& job, std::int64_t tasks_max);

}  // namespace trainyard

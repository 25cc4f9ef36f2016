// The processes that a run left on this host when it died: those of its tasks that are still
// running. run/yard_run.h ends them when the run resumes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "journal/reader.h"

namespace trainyard::run {

/// The pids, in order. `last` is the last execution of the run, which is not active. None if that
/// has ended or was on another host. Costs a scan of the machine's processes if it died here.
std::vector<std::int64_t> processes_left(const std::string& run_directory,
                                         const journal::ExecutionRow& last);

}  // namespace trainyard::run

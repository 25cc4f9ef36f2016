// The result of a run that has ended, from the counts of its groups. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "journal/reader.h"
#include "run/run_outcome.h"

namespace trainyard::app {

/// 1 if a task failed or was skipped, else 75 if one has not finished: a retry of some tasks of an
/// interrupted run leaves the others STOPPED.
run::ExitCode exit_code_of(const std::vector<journal::GroupRow>& groups);

/// "1 of 6 tasks failed, 2 skipped", "1 of 6 tasks finished, 5 stopped".
std::string shortfall_text(const std::vector<journal::GroupRow>& groups);

}  // namespace trainyard::app

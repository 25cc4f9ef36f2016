// Reads the outcome of a run from its directory, for commands that wait for it and for a queue.
#pragma once

#include <string>

#include "base/result.h"
#include "run/run_outcome.h"

namespace trainyard::cli {

using run::RunOutcome;

/// The outcome as the lock and the journal of the directory have it.
Result<RunOutcome> outcome_of(const std::string& run_directory);

}  // namespace trainyard::cli

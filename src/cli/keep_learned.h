// Keeps what a run has taught for the next run of its job file.
#pragma once

#include <string>

#include "base/result.h"

namespace trainyard::cli {

/// Adds what the finished tasks of a run took to what is kept beside the job file. Runs of a moment
/// leave nothing: there is nothing to be learned from them.
Result<void> keep_learned(const std::string& run_directory, const std::string& job_file);

}  // namespace trainyard::cli

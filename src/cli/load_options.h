// The paths in the words of the command line, for the commands that load a job file.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "job/job.h"

namespace trainyard::cli {

/// Seen from the current directory, which may be gone.
Result<job::LoadOptions> load_options(const std::string& job_file, const std::string& config_file,
                                      const std::vector<std::string>& settings,
                                      const std::string& run_directory = {});

/// Sets what a job is compared with where its run uses this machine alone.
void compare_with_this_machine(job::LoadOptions& load);

}  // namespace trainyard::cli

// The paths in the words of the command line, for the commands that load a job file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "job/job.h"

namespace trainyard::cli {

/// Seen from the current directory, which may be gone.
Result<job::LoadOptions> load_options(const std::string& job_file, const std::string& config_file,
                                      const std::vector<std::string>& settings,
                                      const std::string& run_directory = {});

/// LoadOptions::disk_size of this machine: that of the nearest directory above which exists.
std::optional<Bytes> disk_size(const std::string& directory);

}  // namespace trainyard::cli

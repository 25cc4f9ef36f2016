#include "cli/load_options.h"

#include <expected>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "job/job.h"
#include "sys/environment.h"
#include "sys/files.h"

namespace trainyard::cli {

Result<job::LoadOptions> load_options(const std::string& job_file, const std::string& config_file,
                                      const std::vector<std::string>& settings,
                                      const std::string& run_directory) {
  Result<std::string> here = sys::current_directory();
  if (!here) return std::unexpected(std::move(here.error()));
  return job::LoadOptions{.job_file = job_file,
                          .config_file = config_file,
                          .settings = settings,
                          .run_directory = run_directory,
                          .current_directory = *here,
                          .environment = sys::environment(),
                          .host = sys::host_name()};
}

}  // namespace trainyard::cli

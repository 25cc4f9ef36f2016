#include "cli/load_options.h"

#include <cstdint>
#include <expected>
#include <filesystem>
#include <system_error>
#include <utility>

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

std::optional<Bytes> disk_size(const std::string& directory) {
  std::filesystem::path place = directory;
  std::error_code wrong;
  while (!std::filesystem::exists(place, wrong) && place.has_relative_path()) {
    place = place.parent_path();
  }
  const std::filesystem::space_info room = std::filesystem::space(place, wrong);
  if (wrong) return std::nullopt;
  return Bytes{static_cast<std::int64_t>(room.capacity)};
}

}  // namespace trainyard::cli

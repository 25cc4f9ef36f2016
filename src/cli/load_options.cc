#include "cli/load_options.h"

#include <cstdint>
#include <expected>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "base/bytes.h"
#include "hardware/capacity.h"
#include "sys/environment.h"
#include "sys/files.h"

namespace trainyard::cli {
namespace {

/// The size of the disk of the nearest directory above that exists.
std::optional<Bytes> disk_size(const std::string& directory) {
  std::filesystem::path place = directory;
  while (!sys::exists(place) && place.has_relative_path()) place = place.parent_path();
  std::error_code wrong;
  const std::filesystem::space_info room = std::filesystem::space(place, wrong);
  if (wrong) return std::nullopt;
  return Bytes{static_cast<std::int64_t>(room.capacity)};
}

}  // namespace

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

void compare_with_this_machine(job::LoadOptions& load) {
  load.disk_size = disk_size;
  load.memory_now = hardware::memory_available();
}

}  // namespace trainyard::cli

#include "hardware/mps.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "hardware/cgroup.h"
#include "hardware/process_owner.h"

namespace trainyard::hardware {

bool mps_runs(const std::string& directory) {
  // As /proc has it, which shortens names.
  constexpr std::string_view kDaemon = "nvidia-cuda-mps";
  const std::optional<std::int64_t> pid =
      read_limit(fmt::format("{}/nvidia-cuda-mps-control.pid", directory));
  return pid && *pid > 0 && name_of_process(*pid) == kDaemon && !other_user_of(*pid);
}

}  // namespace trainyard::hardware

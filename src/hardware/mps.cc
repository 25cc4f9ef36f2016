#include "hardware/mps.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "hardware/cgroup.h"
#include "hardware/process_owner.h"

namespace trainyard::hardware {

std::optional<MpsService> find_mps(const std::string& directory) {
  // As /proc has it, which shortens names.
  constexpr std::string_view kDaemon = "nvidia-cuda-mps";
  const std::optional<std::int64_t> pid =
      read_limit(fmt::format("{}/nvidia-cuda-mps-control.pid", directory));
  const bool runs = pid && *pid > 0 && name_of_process(*pid) == kDaemon && !other_user_of(*pid);
  if (!runs) return std::nullopt;
  return MpsService{.directory = directory, .daemon = *pid};
}

bool is_gone(const MpsService& service) {
  const std::optional<MpsService> now = find_mps(service.directory);
  return !now || now->daemon != service.daemon;
}

}  // namespace trainyard::hardware

#include "run/attempt_limits.h"

#include <utility>

#include "base/bytes.h"
#include "hardware/cgroup.h"

namespace trainyard::run {

void add_limits(const model::StartAttempt& start, std::span<const model::Gpu> gpus,
                LimitKeeping keeping, model::Launch& launch) {
  if (start.gpu_memory_max > Bytes{} && !launch.own_ranks && !launch.forked) {
    for (const model::Gpu& gpu : gpus) {
      for (std::string& region : hardware::regions_of(gpu, keeping.regions)) {
        launch.region_limits.push_back({.region = std::move(region), .most = start.gpu_memory_max});
      }
    }
  }
  if (!launch.region_limits.empty()) {
    launch.capped_by += launch.capped_by.empty() ? "the kernel" : ", the kernel";
  }
  if (start.memory_max == Bytes{} && launch.region_limits.empty()) return;
  launch.memory_group = std::move(keeping.group);
  launch.memory_max = start.memory_max;
}

}  // namespace trainyard::run

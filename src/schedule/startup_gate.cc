#include "schedule/startup_gate.h"

#include <algorithm>

#include "model/ids.h"

namespace trainyard::schedule {

void StartupGate::begins(const GpuSet& gpus, Bytes each, Instant until) {
  for (const model::GpuIndex gpu : gpus) cards_[gpu.value] = std::max(cards_[gpu.value], each);
  if (!gpus.empty()) opens_at_ = std::min(opens_at_.value_or(until), until);
}

std::vector<GpuRoom> StartupGate::open(std::span<const GpuRoom> room,
                                       const model::Request& request) const {
  std::vector<GpuRoom> open(room.begin(), room.end());
  for (std::size_t i = 0; i < open.size(); ++i) {
    if (cards_[i] == Bytes{}) continue;
    const Bytes left = open[i].free - request.gpu_memory;
    const bool is_tight = left < std::max(cards_[i], request.gpu_memory);
    open[i].avoided = open[i].avoided || is_tight;
  }
  return open;
}

}  // namespace trainyard::schedule

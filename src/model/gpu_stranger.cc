#include "model/gpu_stranger.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/bytes.h"

namespace trainyard::model {

std::optional<std::uint32_t> who_computes(std::span<const GpuStranger> strangers) {
  constexpr Bytes kTiny = mb(100);
  constexpr std::string_view kMps = "nvidia-cuda-mps";
  const GpuStranger* most = nullptr;
  for (const GpuStranger& one : strangers) {
    if (!one.user || one.draws || one.program.starts_with(kMps)) continue;
    if (one.memory && *one.memory < kTiny) continue;
    if (most == nullptr || one.memory > most->memory) most = &one;
  }
  return most == nullptr ? std::nullopt : most->user;
}

}  // namespace trainyard::model

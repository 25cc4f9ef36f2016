#include "model/gpu_stranger.h"

#include <map>
#include <string_view>

namespace trainyard::model {
namespace {

constexpr Bytes kTiny = mb(100);

bool may_compute(const GpuStranger& one) {
  constexpr std::string_view kMps = "nvidia-cuda-mps";
  if (!one.user || one.draws || one.program.starts_with(kMps)) return false;
  return !one.memory || *one.memory >= kTiny;
}

/// How much of a GPU the runs of a user have reserved.
struct Reserved {
  Bytes memory;
  bool whole = false;
};

std::optional<Reserved> reserved_by(std::uint32_t user, const std::string& uuid,
                                    std::span<const Neighbour> neighbours) {
  std::optional<Reserved> sum;
  for (const Neighbour& it : neighbours) {
    if (it.user != user) continue;
    const HeldPromise held = sum_of(it.its.held, it.its.claimed);
    const CardPromise* const card = find_card(held, uuid);
    if (card == nullptr) continue;
    if (!sum) sum.emplace();
    sum->memory += card->memory;
    sum->whole = sum->whole || card->whole;
  }
  return sum;
}

}  // namespace

std::optional<std::uint32_t> who_computes(std::span<const GpuStranger> strangers,
                                          const std::string& uuid,
                                          std::span<const Neighbour> neighbours) {
  std::map<std::uint32_t, Bytes> together;
  for (const GpuStranger& one : strangers) {
    if (may_compute(one)) together[*one.user] += one.memory.value_or(Bytes{});
  }
  std::erase_if(together, [&](const auto& it) {
    const std::optional<Reserved> reserved = reserved_by(it.first, uuid, neighbours);
    return reserved && (reserved->whole || it.second < reserved->memory + kTiny);
  });
  const GpuStranger* most = nullptr;
  for (const GpuStranger& one : strangers) {
    if (!may_compute(one) || !together.contains(*one.user)) continue;
    if (most == nullptr || one.memory > most->memory) most = &one;
  }
  return most == nullptr ? std::nullopt : most->user;
}

}  // namespace trainyard::model

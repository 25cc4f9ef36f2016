// Who is in its first allocation on a GPU, and who waits for that: of tasks that share a tight GPU
// not two are at it at once. What a framework takes when it starts is not known before it has
// started, and two that look at the same free memory both take it.
//
// Made anew for each look at those who wait. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "model/resources.h"
#include "schedule/gpu_room.h"

namespace trainyard::schedule {

class StartupGate {
 public:
  explicit StartupGate(std::size_t gpus) : cards_(gpus) {}

  /// One that is promised `each` on these GPUs and has not taken it. After `until` nobody waits for
  /// it any more.
  void begins(const GpuSet& gpus, Bytes each, Instant until);

  /// The room without those GPUs on which a request would have to wait: were it or one that begins
  /// there to take twice what it is promised, there would not be enough.
  [[nodiscard]] std::vector<GpuRoom> open(std::span<const GpuRoom> room,
                                          const model::Request& request) const;

  /// When the first of those that begin is waited for no longer; nothing when none does.
  [[nodiscard]] std::optional<Instant> opens_at() const { return opens_at_; }

 private:
  std::vector<Bytes> cards_;  ///< The most that one that begins there is promised; 0: none does.
  std::optional<Instant> opens_at_;
};

}  // namespace trainyard::schedule

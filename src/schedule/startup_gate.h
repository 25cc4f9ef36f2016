// The tasks in their first allocation on a GPU, and the tasks that wait for that: of tasks that
// share a tight GPU no two allocate at once. A framework's need is not known before it has started,
// and two that see the same free memory both take it.
//
// A new one is made for each look at the waiting tasks. Pure.
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

  /// A task has `each` reserved on these GPUs and has not taken it. After `until` no task waits for
  /// it any more.
  void begins(const GpuSet& gpus, Bytes each, Instant until);

  /// The room without those GPUs on which a request would have to wait: if it or a task that begins
  /// there took twice its reservation, there would not be enough.
  [[nodiscard]] std::vector<GpuRoom> open(std::span<const GpuRoom> room,
                                          const model::Request& request) const;

  /// When the first of the beginning tasks is waited for no longer; nothing when none begins.
  [[nodiscard]] std::optional<Instant> opens_at() const { return opens_at_; }

 private:
  std::vector<Bytes> cards_;  ///< The largest reservation of a task that begins there; 0: none
                              ///< does.
  std::optional<Instant> opens_at_;
};

}  // namespace trainyard::schedule

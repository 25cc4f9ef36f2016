// The GPU on which a waiting task could begin soonest, and the obstacle there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "model/waiting.h"

namespace trainyard::model {

/// Nearest means: the least would have to change. In this order.
struct GpuObstacle {
  enum class Kind : std::uint8_t {
    None,         ///< At the last reading there was room.
    Tasks,        ///< There is memory, and as many tasks as may share it.
    Utilization,  ///< There is memory, and tasks that keep it busy.
    OtherUser,    ///< There is memory, and a process of a user to whom it is left.
    Drained,      ///< There is memory, and somebody wants the GPU back.
    Memory,       ///< It has too little free.
    Whole,        ///< Who has it has it for its own.
  };
  Kind kind = Kind::None;
  std::size_t gpu = 0;
  Bytes missing;  ///< So much more would have to be free.

  friend bool operator==(const GpuObstacle&, const GpuObstacle&) = default;
};

/// The obstacle for a task that shares its GPUs. A task on several GPUs waits for the last one that
/// comes free. Nothing if fewer GPUs answer than it needs.
std::optional<GpuObstacle> nearest_obstacle(const Reason& reason, const Headroom& room);

/// Whether as many are on the GPU as it lets be there itself; else it is one of those that lets no
/// more be there.
bool is_full_by_its_own_word(const Reason& reason, const Headroom::Card& card);

/// True if a task waits for another GPU because it was lost on this one.
bool is_avoided(const Reason& reason, std::size_t gpu);

/// Whether it could be one of its GPUs at all.
bool may_be_on(const Reason& reason, const Headroom& room, std::size_t gpu);

}  // namespace trainyard::model

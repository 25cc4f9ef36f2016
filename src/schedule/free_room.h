// The free room of machines, kept so that one with enough is found without a look at all of them: a
// tree in which each node has the maximum of the nodes below it.
//
// For the files of this folder alone. Pure; to set one and to find one costs O(log machines), the
// latter more where one has the CPUs and another one the memory.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "model/ids.h"
#include "model/resources.h"

namespace trainyard::schedule {

class FreeRoom {
 public:
  struct Room {
    model::Cpus cpus;
    Bytes memory;
  };

  /// Machines may be set in any order; a machine that was not set has no known room.
  void set(model::MachineIndex machine, const Room& room);
  /// The machine is not found any more, until it is set again.
  void forget(model::MachineIndex machine);

  /// The first machine from this on with as much room; nothing if none has.
  [[nodiscard]] std::optional<model::MachineIndex> first(model::MachineIndex from,
                                                         const Room& enough) const;

 private:
  static constexpr Room kNone{.cpus = {-1}, .memory = {-1}};

  void grow(std::size_t machines);
  void put(std::size_t place, const Room& room);
  void take_from_children(std::size_t node);
  [[nodiscard]] bool has(std::size_t node, const Room& enough) const {
    return nodes_[node].cpus >= enough.cpus && nodes_[node].memory >= enough.memory;
  }

  std::size_t leaves_ = 0;   ///< A power of two.
  std::vector<Room> nodes_;  ///< The root is 1, the children of n are 2n and 2n + 1.
};

}  // namespace trainyard::schedule

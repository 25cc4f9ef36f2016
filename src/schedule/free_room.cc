#include "schedule/free_room.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

namespace trainyard::schedule {

void FreeRoom::set(model::MachineIndex machine, const Room& room) {
  // Negative room is not enough for anything, and must not be taken for that of an unknown machine.
  put(machine.value,
      {.cpus = std::max(room.cpus, kNone.cpus), .memory = std::max(room.memory, kNone.memory)});
}

void FreeRoom::forget(model::MachineIndex machine) { put(machine.value, kNone); }

void FreeRoom::grow(std::size_t machines) {
  const std::size_t leaves = std::bit_ceil(machines);
  std::vector<Room> nodes(2 * leaves, kNone);
  std::copy_n(nodes_.begin() + static_cast<std::ptrdiff_t>(leaves_), leaves_,
              nodes.begin() + static_cast<std::ptrdiff_t>(leaves));
  nodes_ = std::move(nodes);
  leaves_ = leaves;
  for (std::size_t node = leaves - 1; node > 0; --node) take_from_children(node);
}

void FreeRoom::take_from_children(std::size_t node) {
  const Room& left = nodes_[2 * node];
  const Room& right = nodes_[2 * node + 1];
  nodes_[node] = {.cpus = std::max(left.cpus, right.cpus),
                  .memory = std::max(left.memory, right.memory)};
}

void FreeRoom::put(std::size_t place, const Room& room) {
  if (place >= leaves_) grow(place + 1);
  std::size_t node = leaves_ + place;
  nodes_[node] = room;
  for (node /= 2; node > 0; node /= 2) take_from_children(node);
}

/// Up from where it begins as long as there is nothing, and then down to the first.
std::optional<model::MachineIndex> FreeRoom::first(model::MachineIndex from,
                                                   const Room& enough) const {
  if (from.value >= leaves_) return std::nullopt;
  std::size_t node = leaves_ + from.value;
  while (true) {
    if (has(node, enough)) {
      if (node >= leaves_) {
        return model::MachineIndex{static_cast<std::uint32_t>(node - leaves_)};
      }
      node *= 2;
      continue;
    }
    // The next one to the right, on the lowest level on which there is one.
    while (node % 2 == 1) node /= 2;
    if (node == 0) return std::nullopt;
    ++node;
  }
}

}  // namespace trainyard::schedule

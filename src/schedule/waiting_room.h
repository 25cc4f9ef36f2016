// The tasks that wait for what they asked for, in lanes: tasks of one shape that ask for the same.
// A retry that asks for more than its shape has a lane of its own. Within a lane tasks go in the
// order of the job file, and so only the head of a lane is ever looked at.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "model/ids.h"
#include "model/resources.h"

namespace trainyard {

class WaitingRoom {
 public:
  /// A lane with somebody in it.
  struct Lane {
    ShapeIndex shape;
    GroupIndex group;
    Request request;
    std::deque<TaskIndex> tasks;  ///< In order.
  };

  /// The head of a lane, and the lane.
  using Place = std::pair<TaskIndex, std::uint32_t>;

  /// The oldest first.
  using Order = std::set<Place>;

  void add(TaskIndex task, ShapeIndex shape, GroupIndex group, const Request& request);

  /// Takes the head out of a lane.
  TaskIndex take_head(std::uint32_t index);

  /// Takes a task out of wherever it waits. Costs O(lanes + tasks of its lane).
  void remove(TaskIndex task);

  /// Empties all lanes of a group; returns who was there, in order.
  std::vector<TaskIndex> clear(GroupIndex group);

  [[nodiscard]] const Order& order() const { return order_; }
  [[nodiscard]] const Lane& lane(std::uint32_t index) const { return lanes_[index]; }
  /// How many wait in all lanes of a shape.
  [[nodiscard]] std::uint32_t waiting_in(ShapeIndex shape) const;

 private:
  void leave(ShapeIndex shape) { --waiting_[shape]; }

  std::vector<Lane> lanes_;
  std::map<std::pair<ShapeIndex, Request>, std::uint32_t> index_;
  std::map<ShapeIndex, std::uint32_t> waiting_;
  Order order_;
};

}  // namespace trainyard

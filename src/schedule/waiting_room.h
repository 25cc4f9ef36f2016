// The tasks that wait for what they asked for, in lanes: tasks of one shape that ask for the same.
// A retry that asks for more than its shape has a lane of its own. Tasks go in the order of their
// ranks, and of the job file where these are alike; so only the head of a lane is ever looked at.
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

  /// Where a task stands among all.
  struct Turn {
    std::int64_t rank = 0;
    TaskIndex task;
    friend auto operator<=>(const Turn&, const Turn&) = default;
  };

  /// The head of a lane, and the lane.
  struct Place {
    Turn turn;
    std::uint32_t lane = 0;
    friend auto operator<=>(const Place&, const Place&) = default;
  };

  /// The first first.
  using Order = std::set<Place>;

  /// Smaller ranks go first. By task; empty: all are alike. Who waits is put in order anew.
  void set_ranks(std::vector<std::int64_t> ranks);
  [[nodiscard]] Turn turn_of(TaskIndex task) const {
    return {.rank = ranks_.empty() ? 0 : ranks_[task.value], .task = task};
  }

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
  void stand(std::uint32_t index) {
    order_.insert({.turn = turn_of(lanes_[index].tasks.front()), .lane = index});
  }
  void step_back(std::uint32_t index) {
    order_.erase({.turn = turn_of(lanes_[index].tasks.front()), .lane = index});
  }

  std::vector<std::int64_t> ranks_;

  std::vector<Lane> lanes_;
  std::map<std::pair<ShapeIndex, Request>, std::uint32_t> index_;
  std::map<ShapeIndex, std::uint32_t> waiting_;
  Order order_;
};

}  // namespace trainyard

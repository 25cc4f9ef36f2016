// The tasks that wait for what they asked for, in lanes: tasks of one shape that ask for the same.
// A retry that asks for more than its shape has a lane of its own. Tasks go in the order of their
// priorities, of their turns where these are alike, and of the job file where those are; so only
// the head of a lane is ever looked at.
//
// order_ has one Head for each lane with somebody in it, that of its head, so whatever changes a
// head takes the Head out before and puts it in after. A lane that has become empty stays: its
// number is what Head and index_ know it by, and a retry may come back to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "model/ids.h"
#include "model/resources.h"

namespace trainyard::schedule {

class WaitingRoom {
 public:
  /// Tasks that are alike for whoever looks for room. May be empty.
  struct Lane {
    model::ShapeIndex shape;
    model::GroupIndex group;
    model::Request request;
    std::deque<model::TaskIndex> tasks;  ///< In order.
  };

  /// Where a task stands among all.
  struct Precedence {
    int behind = 0;  ///< What was said of its priority, negated.
    std::int64_t turn = 0;
    model::TaskIndex task;
    friend auto operator<=>(const Precedence&, const Precedence&) = default;
  };

  /// The head of a lane, and the lane.
  struct Head {
    Precedence precedence;
    std::uint32_t lane = 0;
    friend auto operator<=>(const Head&, const Head&) = default;
  };

  /// The first first.
  using Order = std::set<Head>;

  /// Before the task waits here for the first time. The larger goes first; 0 where nothing is said.
  void set_priority(model::TaskIndex task, int priority);

  /// Smaller turns go first, of tasks of the same priority. By task; empty: all are alike. Who
  /// waits is put in order anew. A task that was added to the run since has no turn, and goes last.
  void set_turns(std::vector<std::int64_t> turns);
  [[nodiscard]] Precedence precedence_of(model::TaskIndex task) const {
    const int behind = task.value < priorities_.size() ? -priorities_[task.value] : 0;
    if (turns_.empty()) return {.behind = behind, .turn = 0, .task = task};
    const bool has_one = task.value < turns_.size();
    return {.behind = behind,
            .turn = has_one ? turns_[task.value] : std::numeric_limits<std::int64_t>::max(),
            .task = task};
  }

  void add(model::TaskIndex task, model::ShapeIndex shape, model::GroupIndex group,
           const model::Request& request);

  /// Takes the head out of a lane.
  model::TaskIndex take_head(std::uint32_t index);

  /// Takes a task out of wherever it waits. Costs O(lanes + tasks of its lane).
  void remove(model::TaskIndex task);

  /// Empties all lanes of a group; returns who was there, in order.
  std::vector<model::TaskIndex> clear(model::GroupIndex group);

  [[nodiscard]] const Order& order() const { return order_; }
  [[nodiscard]] const Lane& lane(std::uint32_t index) const { return lanes_[index]; }
  /// How many wait in all lanes of a shape.
  [[nodiscard]] std::uint32_t waiting_in(model::ShapeIndex shape) const;

 private:
  void leave(model::ShapeIndex shape) { --waiting_[shape]; }
  void stand(std::uint32_t index) {
    order_.insert({.precedence = precedence_of(lanes_[index].tasks.front()), .lane = index});
  }
  void step_back(std::uint32_t index) {
    order_.erase({.precedence = precedence_of(lanes_[index].tasks.front()), .lane = index});
  }

  std::vector<int> priorities_;  ///< By task, as far as any is not 0.
  std::vector<std::int64_t> turns_;

  std::vector<Lane> lanes_;
  std::map<std::pair<model::ShapeIndex, model::Request>, std::uint32_t> index_;  ///< Into lanes_.
  std::map<model::ShapeIndex, std::uint32_t> waiting_;  ///< How many wait, over all its lanes.
  Order order_;
};

}  // namespace trainyard::schedule

// The tasks that wait for what they asked for, in lanes: tasks of one shape that ask for the same.
// A retry that asks for more than its shape has a lane of its own. Tasks go in the order of their
// priorities, of their turns where these are alike, and of the job file where those are, one that
// needs others in the place of the first of them; so only the head of a lane is ever looked at.
// While a machine refuses to start tasks, those that it has refused go behind all others.
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
#include <optional>
#include <set>
#include <span>
#include <tuple>
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
    model::MachineIndex machine;  ///< The one that they are on; of no meaning before they start.
    std::deque<model::TaskIndex> tasks;  ///< In order.
  };

  /// Where a task stands among all.
  struct Precedence {
    int refusals_of_shape = 0;  ///< As refuse() counts.
    int refusals = 0;           ///< The same of the task itself.
    int behind = 0;             ///< What was said of its priority, negated.
    std::int64_t turn = 0;
    model::TaskIndex in_stead_of;
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

  /// While the task does not wait here. The larger goes first; 0 where nothing is said.
  void set_priority(model::TaskIndex task, int priority);

  /// Before the task waits here for the first time: it goes where that earlier one would. So what
  /// has been begun, as the training of a cell, is brought to its end before more is begun.
  void set_stead(model::TaskIndex task, model::TaskIndex earlier);

  /// Smaller turns go first, of tasks of the same priority. By task; empty: all are alike. Who
  /// waits is put in order anew. A task that was added to the run since has no turn, and goes last.
  void set_turns(std::vector<std::int64_t> turns);

  /// While the task does not wait here: a machine has refused to start it. It goes behind the others
  /// of its shape, and these behind all other shapes, which may not share the cause: a group has one
  /// working directory.
  void refuse(model::TaskIndex task, model::ShapeIndex shape);
  /// All go in their own order again.
  void forget_refusals();

  /// `shape` is that of the task.
  [[nodiscard]] Precedence precedence_of(model::TaskIndex task, model::ShapeIndex shape) const {
    const int behind = task.value < priorities_.size() ? -priorities_[task.value] : 0;
    const auto stead = steads_.find(task);
    const model::TaskIndex earlier = stead == steads_.end() ? task : stead->second;
    std::int64_t turn = 0;
    if (!turns_.empty()) {
      const bool has_one = task.value < turns_.size();
      turn = has_one ? turns_[task.value] : std::numeric_limits<std::int64_t>::max();
    }
    return {.refusals_of_shape = count_of(refusals_of_shapes_, shape),
            .refusals = count_of(refusals_, task),
            .behind = behind,
            .turn = turn,
            .in_stead_of = earlier,
            .task = task};
  }

  void add(model::TaskIndex task, model::ShapeIndex shape, model::GroupIndex group,
           const model::Request& request, model::MachineIndex machine = {});

  /// Takes the head out of a lane.
  model::TaskIndex take_head(std::uint32_t index);

  /// Whether it waits here. Costs O(lanes * log(tasks of one)), as remove() does.
  [[nodiscard]] bool holds(model::TaskIndex task) const { return place_of(task).has_value(); }

  /// Takes a task out of wherever it waits; returns what it asked for. Costs O(tasks of its lane)
  /// more.
  model::Request remove(model::TaskIndex task);

  /// Empties all lanes of a group; returns who was there, in order.
  std::vector<model::TaskIndex> clear(model::GroupIndex group);

  [[nodiscard]] const Order& order() const { return order_; }
  [[nodiscard]] const Lane& lane(std::uint32_t index) const { return lanes_[index]; }
  /// How many wait in all lanes of a shape.
  [[nodiscard]] std::uint32_t waiting_in(model::ShapeIndex shape) const;
  /// The lanes, also empty ones, whose tasks ask for whole GPUs before anything is learned of them.
  [[nodiscard]] std::span<const std::uint32_t> lanes_for_whole_gpus() const { return whole_gpus_; }

 private:
  struct Place {
    std::uint32_t lane = 0;
    std::ptrdiff_t position = 0;
  };
  [[nodiscard]] std::optional<Place> place_of(model::TaskIndex task) const;
  void leave(model::ShapeIndex shape) { --waiting_[shape]; }
  [[nodiscard]] Head head_of(std::uint32_t index) const {
    const Lane& lane = lanes_[index];
    return {.precedence = precedence_of(lane.tasks.front(), lane.shape), .lane = index};
  }
  void stand(std::uint32_t index) { order_.insert(head_of(index)); }
  void step_back(std::uint32_t index) { order_.erase(head_of(index)); }
  void put_in_order();
  template <class Key>
  static int count_of(const std::map<Key, int>& counts, Key key) {
    const auto found = counts.find(key);
    return found == counts.end() ? 0 : found->second;
  }

  std::vector<int> priorities_;  ///< By task, as far as any is not 0.
  std::vector<std::int64_t> turns_;
  std::map<model::TaskIndex, model::TaskIndex> steads_;  ///< Of the few that go in another's.
  std::map<model::TaskIndex, int> refusals_;
  std::map<model::ShapeIndex, int> refusals_of_shapes_;

  std::vector<Lane> lanes_;
  /// Into lanes_.
  std::map<std::tuple<model::ShapeIndex, model::MachineIndex, model::Request>, std::uint32_t>
      index_;
  std::map<model::ShapeIndex, std::uint32_t> waiting_;  ///< How many wait, over all its lanes.
  std::vector<std::uint32_t> whole_gpus_;               ///< Into lanes_.
  Order order_;
};

}  // namespace trainyard::schedule

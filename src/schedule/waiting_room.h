// The tasks that wait for their requests, in lanes: tasks of one shape with the same request. A
// retry that requests more than its shape has a lane of its own. Tasks go in the order of their
// priorities, then of their turns, then of the job file. A task that needs others goes in the place
// of the first of them. So only the head of a lane is ever examined. While a machine refuses to
// start tasks, those that it has refused go behind all others.
//
// order_ has one Head for each lane that is not empty: that of its head. Code that changes a head
// takes the Head out before and puts it in after. A lane that has become empty stays: Head and
// index_ refer to it by its number, and a retry may come back to it.
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
#include "base/time.h"
#include "model/ids.h"
#include "model/resources.h"

namespace trainyard::schedule {

class WaitingRoom {
 public:
  /// Tasks that are equal for the search for room. May be empty.
  struct Lane {
    model::ShapeIndex shape;
    model::GroupIndex group;
    model::Request request;
    model::MachineIndex machine;  ///< The machine that they are on; unused before they start.
    std::deque<model::TaskIndex> tasks;  ///< In order.
  };

  /// The position of a task among all.
  struct Precedence {
    int refusals_of_shape = 0;  ///< As counted by refuse().
    int refusals = 0;           ///< The same of the task itself.
    int behind = 0;             ///< Its priority that was set, negated.
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

  /// Call while the task does not wait here. The larger goes first; 0 if nothing is set.
  void set_priority(model::TaskIndex task, int priority);

  /// Call before the task waits here for the first time: it goes in the place of the earlier task.
  /// So work that has begun, such as the training of a cell, is finished before more is begun.
  void set_stead(model::TaskIndex task, model::TaskIndex earlier);

  /// Smaller turns go first, among tasks of the same priority. By task; empty: all are equal.
  /// Waiting tasks are sorted again. A task that was added to the run since has no turn, and goes
  /// last.
  void set_turns(std::vector<std::int64_t> turns);

  /// Call while the task does not wait here: a machine has refused to start it. It goes behind the
  /// others of its shape, and these behind all other shapes, which may not share the cause: a group
  /// has one working directory.
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

  /// Removes a task from the lane in which it waits; returns its request. Costs O(tasks of its
  /// lane) more.
  model::Request remove(model::TaskIndex task);

  /// Empties all lanes of a group; returns their tasks, in order.
  std::vector<model::TaskIndex> clear(model::GroupIndex group);

  [[nodiscard]] const Order& order() const { return order_; }
  [[nodiscard]] const Lane& lane(std::uint32_t index) const { return lanes_[index]; }
  /// Number of tasks that wait in all lanes of a shape.
  [[nodiscard]] std::uint32_t waiting_in(model::ShapeIndex shape) const;
  /// The lanes, also empty ones, whose tasks request whole GPUs before anything is learned of them.
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

  std::vector<int> priorities_;  ///< By task, up to the last that is not 0.
  std::vector<std::int64_t> turns_;
  std::map<model::TaskIndex, model::TaskIndex> steads_;  ///< Of the few tasks that go in the place
                                                         ///< of another.
  std::map<model::TaskIndex, int> refusals_;
  std::map<model::ShapeIndex, int> refusals_of_shapes_;

  std::vector<Lane> lanes_;
  /// Into lanes_.
  std::map<std::tuple<model::ShapeIndex, model::MachineIndex, model::Request>, std::uint32_t>
      index_;
  std::map<model::ShapeIndex, std::uint32_t> waiting_;  ///< Number of waiting tasks, over all lanes
                                                        ///< of a shape.
  std::vector<std::uint32_t> whole_gpus_;               ///< Into lanes_.
  Order order_;
};

/// Tasks that wait for the time of their first or next try. They request nothing until then.
class DelayedTries {
 public:
  /// `memory` is the request of the try. A task is added once.
  void add(model::TaskIndex task, Instant at, Bytes memory);

  [[nodiscard]] bool holds(model::TaskIndex task) const { return tasks_.contains(task); }
  struct Waiting {
    Instant at;
    Bytes memory;
  };
  /// The try that the task waited for; nothing if it was not here.
  std::optional<Waiting> remove(model::TaskIndex task);

  struct Due {
    model::TaskIndex task;
    Bytes memory;
  };
  /// Removes and returns the tasks whose time has come, the earliest first.
  std::vector<Due> take_due(Instant now);

  /// Removes and returns all tasks from `first` up to, but without, `last`, in their order.
  std::vector<model::TaskIndex> take(model::TaskIndex first, model::TaskIndex last);

  /// The delay of a task that has none of its own and failed now: tasks that failed together, as by
  /// a database that was locked, are not retried together.
  Duration spread(model::AttemptKey failed, Instant now);

  /// When the next one is due.
  [[nodiscard]] std::optional<Instant> first() const;

 private:
  std::map<model::TaskIndex, Waiting> tasks_;
  std::set<std::pair<Instant, model::TaskIndex>> order_;  ///< The same tasks by time.
  struct Failed {
    model::TaskIndex task;
    Instant at;
  };
  std::optional<Failed> last_spread_;  ///< The last task of spread().
};

}  // namespace trainyard::schedule

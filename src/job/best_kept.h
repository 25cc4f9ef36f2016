// The tasks of a group with `keep` that may lose their files on the disk: tasks that have finished,
// are not among the best of their group, and are needed by no task any more. Queries nothing, and
// deletes nothing.
//
//   not finished ──▶ among the best ──▶ worse ──▶ given out by take(), once
//        │                                ▲ waits here while a task may read its directory
//        └──▶ has no number: it stays
//
// A task that needs another may read its directory until it has finished itself or turns out not to
// be needed: a failed task may be retried. The next round of a repeat may read it too, and so may
// every round where a group before the repeat is needed in the repeat. A task that is not among the
// best now never will be.
//
// Belongs to one thread.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "job/keep.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/status.h"

namespace trainyard::job {

class BestKept {
 public:
  /// The next batch of the run; `groups` are those of the plan. Tasks that finished before must be
  /// passed to change(), as they have no number yet.
  void add(const model::Plan& plan, const std::vector<KeptGroup>& groups);

  /// The `keep` of the task's group; nothing where the group has none, and all its files stay.
  [[nodiscard]] const Keep* keep_of(model::TaskIndex task) const;
  /// The index of its group in told(). Only for a task that has a keep_of().
  [[nodiscard]] std::size_t number_of(model::TaskIndex task) const;

  /// The verdict of a task has changed, or it has none any more. `number` is its result under the
  /// key of its keep_of(), if it has finished.
  void change(model::TaskIndex task, model::Verdict verdict, std::optional<double> number);
  /// The round that has finished was the last.
  void no_more_rounds();

  /// The tasks that may lose what they hold on the disk from now on: each is returned once.
  std::vector<model::TaskIndex> take();

  /// The outcome for the groups of one name.
  struct Told {
    std::string name;
    Keep keep;
    std::size_t finished = 0;
    std::size_t worse = 0;                  ///< Finished tasks that are not among the best.
    std::size_t given = 0;                  ///< Tasks that take() has returned.
    std::size_t without = 0;                ///< Finished, and left no number.
    std::vector<model::TaskIndex> unknown;  ///< The first of those.
  };
  [[nodiscard]] std::vector<Told> told() const;

  /// The maximum number of tasks in `unknown`.
  static constexpr std::size_t kUnknownTold = 3;

 private:
  enum class Place : std::uint8_t { NotFinished, Best, Worse, Given, Without };
  struct Task {
    std::uint32_t group = 0;
    bool is_open = true;  ///< It may still read what it needs.
    Place place = Place::NotFinished;
  };
  struct Group {
    std::optional<std::size_t> kept;  ///< An index into kept_.
    std::optional<std::uint32_t> round;
    bool is_for_rounds = false;
    std::uint32_t open = 0;              ///< The number of its open tasks.
    std::vector<std::uint32_t> read_by;  ///< Groups that need all of it.
    std::vector<std::uint32_t> reads;    ///< The other way round.
    std::vector<std::uint32_t> waiting;  ///< Tasks that could not go because of that.
  };
  struct Rank {
    double value = 0;  ///< The less the better.
    std::uint32_t task = 0;
    friend auto operator<=>(const Rank&, const Rank&) = default;
  };
  struct Kept {
    Told told;
    std::set<Rank> best;
  };
  struct Round {
    std::uint32_t open = 0;
    std::vector<std::uint32_t> groups;
  };

  void add_group(const KeptGroup& group);
  void add_needs(const model::Plan& plan, const model::PlanStart& start);
  void link(std::uint32_t reader, std::uint32_t group);
  std::size_t kept_number(const KeptGroup& group);
  void set_open(Task& task, std::uint32_t number, bool is_open);
  void group_closed(const Group& group);
  void release(std::uint32_t group);
  void rank(std::uint32_t task, std::optional<double> number);
  void forget(std::uint32_t task);
  [[nodiscard]] bool is_read(const Group& group) const;

  /// The number of the first group and task known here: the batches before keep everything.
  model::PlanStart start_;
  std::vector<Group> groups_;
  std::vector<Task> tasks_;
  std::vector<Kept> kept_;
  std::map<std::uint32_t, Round> rounds_;
  bool rounds_are_over_ = false;
  /// For each task that others need, the number of those that may still read its directory: they
  /// have neither finished nor turned out not to be needed.
  std::unordered_map<std::uint32_t, std::uint32_t> open_readers_;
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> needed_by_;  ///< By the reader.
  std::unordered_map<std::uint32_t, double> values_;  ///< For the tasks that are ranked as best.
  std::vector<std::uint32_t> to_look_at_;
};

}  // namespace trainyard::job

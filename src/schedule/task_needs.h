// Which tasks wait for which: what a task needs itself, beside what its group needs. It counts;
// what follows from the counts is decided in schedule/state_needs.cc.
//
// Tasks and what they need come batch by batch, so that both lists stay in order by being added to.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "model/ids.h"
#include "model/plan.h"
#include "model/status.h"
#include "schedule/task_table.h"

namespace trainyard::schedule {

/// Whether what becomes of a needed task is what those that need it wait for. Whoever began a run
/// without one wants the others all the same.
bool is_well(model::Verdict verdict);

class TaskNeeds {
 public:
  /// What has become of all that a task needs.
  struct Counts {
    std::uint32_t open = 0;   ///< Without a verdict.
    std::uint32_t badly = 0;  ///< Ended, and not well.
  };

  /// Adds those of a batch, whose tasks are numbered from `start` on and are in the table already.
  void add(std::span<const model::TaskNeed> needs, const model::PlanStart& start,
           const TaskTable& tasks);

  /// Nothing open and nothing bad where it needs none. Costs O(log n).
  [[nodiscard]] Counts of(model::TaskIndex task) const;
  /// What a task needs, in order.
  [[nodiscard]] std::span<const model::TaskNeed> needs_of(model::TaskIndex task) const;
  /// Those that need a task, in order: the member `task` of each.
  [[nodiscard]] std::span<const model::TaskNeed> needed_by(model::TaskIndex task) const;

  /// A task has its verdict. Costs O(those that need it).
  void concluded(model::TaskIndex task, model::Verdict verdict);
  /// The next task that others need and that has its verdict, in the order of the verdicts. Each is
  /// returned once.
  std::optional<model::TaskIndex> next_concluded();
  /// One that had it begins anew.
  void reopened(model::TaskIndex task, model::Verdict before);

 private:
  struct Needing {
    model::TaskIndex task;
    Counts counts;
  };
  [[nodiscard]] Needing* find(model::TaskIndex task);

  std::vector<model::TaskNeed> needs_;      ///< By task.
  std::vector<model::TaskNeed> reverse_;    ///< By what is needed.
  std::vector<Needing> counts_;             ///< By task: those that need some.
  std::deque<model::TaskIndex> concluded_;  ///< For next_concluded().
};

}  // namespace trainyard::schedule

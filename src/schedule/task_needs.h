// The needs of tasks for other tasks, beside those of their groups. This class counts;
// schedule/state_needs.cc decides by the counts.
//
// Tasks and their needs come batch by batch, so that both lists stay in order by being added to.
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

/// Whether a needed task with this verdict lets the tasks that need it run. A user who began a run
/// without some task wants the others all the same.
bool is_well(model::Verdict verdict);

class TaskNeeds {
 public:
  /// The outcomes of all that a task needs.
  struct Counts {
    std::uint32_t open = 0;   ///< Without a verdict.
    std::uint32_t badly = 0;  ///< Ended, and not well.
  };

  /// Adds the needs of a batch, whose tasks are numbered from `start` on and are in the table
  /// already.
  void add(std::span<const model::TaskNeed> needs, const model::PlanStart& start,
           const TaskTable& tasks);

  /// Nothing open and nothing bad if it needs none. Costs O(log n).
  [[nodiscard]] Counts of(model::TaskIndex task) const;
  /// The needs of a task, in order.
  [[nodiscard]] std::span<const model::TaskNeed> needs_of(model::TaskIndex task) const;
  /// The needs for a task by others, in order: the member `task` of each.
  [[nodiscard]] std::span<const model::TaskNeed> needed_by(model::TaskIndex task) const;

  /// A task has its verdict. Costs O(tasks that need it).
  void concluded(model::TaskIndex task, model::Verdict verdict);
  /// The next task that others need and that has its verdict, in the order of the verdicts. Each is
  /// returned once.
  std::optional<model::TaskIndex> next_concluded();
  /// A task that had its verdict starts over.
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

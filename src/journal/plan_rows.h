// Batches as rows: groups, shapes and tasks, when they are added to a run and when it is resumed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "journal/event_text.h"
#include "journal/journal.h"
#include "journal/sqlite.h"
#include "model/ids.h"
#include "model/plan.h"

namespace trainyard::journal {

/// The settings of a group whose edits are reported.
struct GroupSettings {
  std::string needs;        ///< Names, as a JSON array.
  std::string needs_tasks;  ///< The same of those of which its tasks need some each.
  int parallel_max = 0;
  bool fail_fast = false;
  bool try_first = false;

  friend bool operator==(const GroupSettings&, const GroupSettings&) = default;
};
GroupSettings settings_of(const model::Plan& plan, const model::PlannedGroup& group);

/// Writes down where a batch comes from; in place of what was there.
Result<void> put_batch(Database& database, const Batch& batch, Instant at, bool complete);

/// The number of the next row of a table. None is used again while its batch may have been heard
/// of.
Result<std::uint32_t> next_number(Database& database, std::string_view table);

/// Writes a group of a batch down; in place of one that has this number.
Result<void> put_group(Database& database, std::uint32_t number, const Batch& batch,
                       model::GroupIndex index);

/// Writes the shapes of a batch down, with their tasks counted: finished or waiting. `start` is
/// where its numbers begin in the run.
Result<void> put_shapes(Database& database, const model::Plan& plan, const model::PlanStart& start,
                        const RowNumbers& numbers);

/// Writes down what sharing GPUs was measured to cost, by the numbers of shapes that are there.
Result<void> put_sharing(Database& database,
                         const std::map<std::uint32_t, model::SharingMeasured>& measured);

/// Writes down which tasks of a batch need which; in place of what was there.
Result<void> put_task_needs(Database& database, const Batch& batch, const model::PlanStart& start,
                            const RowNumbers& numbers);

/// Writes down what has become of the tasks of a batch that the run begins without.
Result<void> put_not_selected(Database& database, const model::Plan& plan,
                              const model::PlanStart& start, const RowNumbers& numbers);

/// Writes the tasks of a batch down, which are numbered from 0.
class TaskRows {
 public:
  /// All three must outlive it.
  static Result<TaskRows> open(Database& database, const Batch& batch,
                               const model::PlanStart& start, const RowNumbers& numbers);

  Result<void> insert(model::TaskIndex task);
  /// Puts the task's place, shape and values into the row that it has, and its fingerprint too
  /// unless `fingerprint_stays`. `edited`: it was, after it had finished.
  struct Update {
    bool fingerprint_stays = false;
    bool edited = false;
  };
  Result<void> update(model::TaskIndex task, Update how);

 private:
  TaskRows(Statement insert, Statement update, const Batch& batch, const model::PlanStart& start,
           const RowNumbers& numbers)
      : insert_(std::move(insert)),
        update_(std::move(update)),
        batch_(&batch),
        start_(start),
        numbers_(&numbers) {}
  /// The numbers of its row, its group's and its shape's.
  struct Numbers {
    std::uint32_t task = 0;
    std::uint32_t group = 0;
    std::uint32_t shape = 0;
  };
  [[nodiscard]] Numbers numbers_of(model::TaskIndex task) const;

  Statement insert_;
  Statement update_;
  const Batch* batch_;
  model::PlanStart start_;
  const RowNumbers* numbers_;
};

Result<void> put_execution(Database& database, std::int64_t number, Instant at,
                           const Execution& execution);

}  // namespace trainyard::journal

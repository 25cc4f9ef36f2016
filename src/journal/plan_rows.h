// The plan as rows: groups, shapes and tasks, when a run is made and when it is resumed.
#pragma once

#include <cstdint>
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

namespace trainyard {

/// What the settings of a group are, as far as an edit of them is told.
struct GroupSettings {
  std::string needs;  ///< Names, as a JSON array.
  int parallel_max = 0;
  bool fail_fast = false;

  friend bool operator==(const GroupSettings&, const GroupSettings&) = default;
};
GroupSettings settings_of(const Plan& plan, const PlannedGroup& group);

/// Writes a group down; in place of one that has this number.
Result<void> put_group(Database& database, std::uint32_t number, GroupIndex index,
                       const Plan& plan);

/// Writes all shapes down in place of those that were there, with their tasks counted: finished or
/// waiting.
Result<void> put_shapes(Database& database, const Plan& plan, const RowNumbers& numbers);

/// Writes tasks down.
class TaskRows {
 public:
  static Result<TaskRows> open(Database& database, const Plan& plan, const PlanNames& names,
                               const RowNumbers& numbers);

  Result<void> insert(TaskIndex task);
  /// Puts the task's place, shape and values into the row that it has, and its fingerprint too
  /// unless `fingerprint_stays`. `edited`: it was, after it had finished.
  struct Update {
    bool fingerprint_stays = false;
    bool edited = false;
  };
  Result<void> update(TaskIndex task, Update how);

 private:
  TaskRows(Statement insert, Statement update, const Plan& plan, const PlanNames& names,
           const RowNumbers& numbers)
      : insert_(std::move(insert)),
        update_(std::move(update)),
        plan_(plan),
        names_(names),
        numbers_(numbers) {}

  Statement insert_;
  Statement update_;
  const Plan& plan_;
  const PlanNames& names_;
  const RowNumbers& numbers_;
};

Result<void> put_execution(Database& database, std::int64_t number, Instant at,
                           const Execution& execution);

}  // namespace trainyard

// Rows of the tables as the values that JournalReader hands out. Not for anybody else.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "journal/machine_table.h"
#include "journal/reader.h"
#include "journal/sqlite.h"

namespace trainyard::journal {

/// Nothing where the column is NULL.
std::optional<Instant> optional_instant(const Statement& row, int column);

/// The columns for read_task(): to be put before a FROM that has the tables t (tasks), g (groups),
/// s (shapes), e (ended) and l (live).
extern const std::string_view kTaskColumns;
/// The joins from `tasks t`.
extern const std::string_view kTaskJoins;

/// The codes of attempts, by the numbers of their rows.
struct KnownCodes {
  struct One {
    std::string name;   ///< As TaskRow::code.
    std::string newer;  ///< As TaskRow::newer_code.
  };
  std::map<std::int64_t, One> by_number;

  [[nodiscard]] One find(std::int64_t number) const;
};
/// Costs O(tasks) where there is more than one of a work tree, else next to nothing.
Result<KnownCodes> read_codes(Database& database);

/// The GPUs of all executions, in their order.
Result<std::vector<GpuRow>> read_gpus(Database& database);
/// The machines of the last execution, in their order.
Result<std::vector<MachineRow>> read_machines(Database& database);

/// The reasons why tasks wait, in the order of their kinds.
Result<std::vector<WaitingReason>> read_waiting(Database& database);

/// Removes tasks that did not have to run from those that the counters call skipped.
Result<void> tell_apart_skipped(Database& database, std::vector<GroupRow>& groups);

/// The entries to which rows refer by number.
struct Known {
  KnownCodes codes;
  KnownMachines machines;
  std::map<std::uint32_t, std::uint32_t> out_of_date;  ///< As read_out_of_date() has them.
};
Result<Known> read_known(Database& database);

TaskRow read_task(const Statement& row, const Known& known);

/// A query of all attempts of those tasks of which `chosen` (of the column `task`) is true, with
/// the columns that read_attempt() reads. Each of the tables that they stand in is asked by its
/// key.
std::string all_attempts(std::string_view chosen);
AttemptRow read_attempt(const Statement& row, const Known& known);

ProgressRow read_progress(const Statement& row);

ExecutionRow read_execution(const Statement& row);
extern const std::string_view kExecutions;

BatchRow read_batch(const Statement& row);
extern const std::string_view kBatches;

}  // namespace trainyard::journal

// Rows of the tables as the values that JournalReader hands out. Not for anybody else.
#pragma once

#include <string>
#include <string_view>

#include "journal/reader.h"
#include "journal/sqlite.h"

namespace trainyard::journal {

/// What read_task() reads: to be put before a FROM that has the tables t (tasks), g (groups),
/// s (shapes), e (ended) and l (live).
extern const std::string_view kTaskColumns;
/// The joins from `tasks t`.
extern const std::string_view kTaskJoins;

TaskRow read_task(const Statement& row);

/// All attempts as one table: task, attempt, started_ms, ended_ms, failure, exit_code, memory_peak,
/// message.
extern const std::string_view kAllAttempts;

/// Reads a task's number, attempt and the columns above.
ProgressRow read_progress(const Statement& row);
AttemptRow read_attempt(const Statement& row);

ExecutionRow read_execution(const Statement& row);
extern const std::string_view kExecutions;

BatchRow read_batch(const Statement& row);
extern const std::string_view kBatches;

}  // namespace trainyard::journal

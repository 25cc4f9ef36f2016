// Closes the open rows of an execution that died, and puts aside the rows of tasks that run again:
// statements over the tables, for journal/resume.h.
//
// Inside a transaction that the caller begins and ends. One thread.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "journal/options.h"
#include "journal/sqlite.h"

namespace trainyard::journal {

/// All attempts that ran are lost, and had ended at `at`. `batches` are the numbers of those that
/// continue, for SQL. Of their tasks only finished ones keep their verdict, or all if
/// `unfinished` is Stay.
Result<void> close_dead_execution(Database& database, Instant at, const std::string& batches,
                                  Unfinished unfinished);

/// The task in this row had finished and is to run again: its attempt is one that another one comes
/// after.
Result<void> forget_result(Database& database, std::uint32_t task);
/// The task in this row is to be retried by a request. It counts as stopped until the request
/// comes.
Result<void> stop_until_retried(Database& database, std::uint32_t task);

}  // namespace trainyard::journal

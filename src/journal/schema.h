// The tables of a journal. docs/journal.md explains them to the people who query them.
#pragma once

#include <cstdint>

namespace trainyard::journal {

/// SQLite's application_id of our files, "Trny", and the version of the tables (user_version).
constexpr std::int64_t kApplicationId = 0x54726E79;
constexpr std::int64_t kSchemaVersion = 23;

/// Makes all tables and views, and marks the file as ours.
extern const char* const kSchema;

/// Makes the index of the tasks in their order. After the first rows: to sort them at once is
/// cheaper than to find the place of each.
extern const char* const kTasksIndex;

/// Asks for the last instant that a journal knows of, in ms: of an event, a sample or an execution.
extern const char* const kLastInstant;

/// The maximum number of rows in `samples`.
constexpr int kSampleRowsMax = 4096;

}  // namespace trainyard::journal

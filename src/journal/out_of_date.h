// The finished tasks of a run that are out of date, by its journal. For the reader alone.
#pragma once

#include <cstdint>
#include <map>

#include "base/result.h"
#include "journal/sqlite.h"

namespace trainyard::journal {

/// The tasks that have finished, and of which find_stale() says that what they need ran after they
/// had started: their numbers, each with that of its group. Costs O(tasks) where a task or a group
/// needs another one, else next to nothing.
Result<std::map<std::uint32_t, std::uint32_t>> read_out_of_date(Database& database);

}  // namespace trainyard::journal

// Tables of results over several tasks each: means over seeds, one key across another; and notes
// about missing results. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "report/result_table.h"

namespace trainyard::report {

/// "2 finished tasks reported no result: print a line ...", for tasks of which none has a result.
std::string no_result_text(std::int64_t finished);

/// Says in the notes which finished tasks have no result; they are counted where no task has one.
/// For a table of tasks, whose status column says why the others have none.
void note_missing(ResultTable& table);

/// One row for all rows that differ in these keys alone, with the means of numbers, also of the
/// time, over the finished tasks. A task that has no result or has not finished is named in the
/// notes, and so is a missing cell that another row has.
Result<ResultTable> averaged_over(ResultTable table, const std::vector<std::string>& keys);

/// A row for each value of one key and a column for each of another one, averaged over all others.
/// `field` may be empty where one is the obvious score, or there is only one.
Result<ResultTable> pivoted(ResultTable table, std::string_view rows, std::string_view columns,
                            std::string_view field);

}  // namespace trainyard::report

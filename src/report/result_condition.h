// The condition that selects rows of a table of results. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "report/result_table.h"
#include "text/condition.h"

namespace trainyard::report {

/// Reads a condition on a column of the table, as text::parse_condition() does. The error for a text
/// without a comparison names the columns.
Result<text::Condition> read_condition(const ResultTable& table, std::string_view text);

/// Keeps the rows for which it holds. Numbers are compared as numbers, however they are written:
/// 86% is 0.86. The status is compared with a state ("failed", "oom") or with its word ("EXIT 3"),
/// in any case.
Result<void> keep_where(ResultTable& table, const text::Condition& condition);

/// The smallest and the largest number of a column: "acc is 0.81 to 0.9, shown as a percentage".
/// Empty where it has no numbers.
std::string range_text(const ResultTable& table, std::string_view name);

}  // namespace trainyard::report

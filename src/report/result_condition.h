// Which rows of a table of results are kept. Pure; any thread.
#pragma once

#include "base/result.h"
#include "report/result_table.h"
#include "text/condition.h"

namespace trainyard::report {

/// Keeps the rows for which it holds. Numbers are compared as numbers, however they are written. The
/// status is compared with a state ("failed", "oom") or with its word ("EXIT 3"), in any case.
Result<void> keep_where(ResultTable& table, const text::Condition& condition);

}  // namespace trainyard::report

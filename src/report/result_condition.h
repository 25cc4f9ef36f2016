// Which rows of a table of results are kept. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "report/result_table.h"

namespace trainyard::report {

/// What rows are kept by: "lr<1e-3", "status=FINISHED", "model!=resnet18".
struct Condition {
  enum class Is : std::uint8_t { Equal, Unequal, Less, LessOrEqual, Greater, GreaterOrEqual };
  std::string name;
  Is is = Is::Equal;
  std::string value;

  friend bool operator==(const Condition&, const Condition&) = default;
};

/// An error for what has no comparison in it, or compares the size of what is no number.
Result<Condition> parse_condition(std::string_view text);

/// Keeps the rows for which it holds. Numbers are compared as numbers, however they are written.
Result<void> keep_where(ResultTable& table, const Condition& condition);

}  // namespace trainyard::report

#include "report/result_condition.h"

#include <cstddef>
#include <expected>
#include <optional>
#include <vector>

#include "base/number_text.h"
#include "base/result.h"
#include "report/result_table.h"
#include "text/condition.h"

namespace trainyard::report {

Result<void> keep_where(ResultTable& table, const text::Condition& condition) {
  using Is = text::Condition::Is;
  const Result<std::size_t> place = table.column(condition.name);
  if (!place) return std::unexpected(place.error());
  const std::optional<double> value = number_in(condition.value);
  const auto is_kept = [&](const std::vector<ResultCell>& row) {
    const ResultCell& cell = row[*place];
    if (value && cell.number) return text::holds(condition.is, *cell.number, *value);
    const bool same = cell.text == condition.value;
    return (condition.is == Is::Equal && same) || (condition.is == Is::Unequal && !same);
  };
  std::erase_if(table.rows, [&](const auto& row) { return !is_kept(row); });
  table.thinned_out = true;
  return {};
}

}  // namespace trainyard::report

#include "report/result_condition.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/number_text.h"
#include "base/result.h"
#include "report/result_table.h"

namespace trainyard::report {

Result<Condition> parse_condition(std::string_view text) {
  struct Sign {
    std::string_view text;
    Condition::Is is;
  };
  // The longer ones first: "<=" begins as "<" does.
  constexpr std::array<Sign, 7> kSigns{{{.text = "<=", .is = Condition::Is::LessOrEqual},
                                        {.text = ">=", .is = Condition::Is::GreaterOrEqual},
                                        {.text = "!=", .is = Condition::Is::Unequal},
                                        {.text = "==", .is = Condition::Is::Equal},
                                        {.text = "<", .is = Condition::Is::Less},
                                        {.text = ">", .is = Condition::Is::Greater},
                                        {.text = "=", .is = Condition::Is::Equal}}};
  const std::size_t at = text.find_first_of("<>!=");
  const auto sign = std::ranges::find_if(kSigns, [&](const Sign& it) {
    return at != std::string_view::npos && text.substr(at).starts_with(it.text);
  });
  if (at == 0 || sign == kSigns.end()) {
    return std::unexpected(
        Error{fmt::format("'{}' is no condition, as 'lr<1e-3' or 'status=FINISHED' are", text)});
  }
  const auto trimmed = [](std::string_view word) {
    const std::size_t first = word.find_first_not_of(' ');
    if (first == std::string_view::npos) return std::string();
    return std::string(word.substr(first, word.find_last_not_of(' ') - first + 1));
  };
  Condition condition{.name = trimmed(text.substr(0, at)),
                      .is = sign->is,
                      .value = trimmed(text.substr(at + sign->text.size()))};
  const bool by_size =
      condition.is != Condition::Is::Equal && condition.is != Condition::Is::Unequal;
  if (by_size && !number_in(condition.value)) {
    return std::unexpected(Error{fmt::format("'{}': '{}' is no number", text, condition.value)});
  }
  return condition;
}

Result<void> keep_where(ResultTable& table, const Condition& condition) {
  const Result<std::size_t> place = table.column(condition.name);
  if (!place) return std::unexpected(place.error());
  const std::optional<double> value = number_in(condition.value);
  const auto holds = [&](const std::vector<ResultCell>& row) {
    const ResultCell& cell = row[*place];
    const bool numbers = value && cell.number;
    const bool same = numbers ? *cell.number == *value : cell.text == condition.value;
    switch (condition.is) {
      case Condition::Is::Equal:
        return same;
      case Condition::Is::Unequal:
        return !same;
      case Condition::Is::Less:
        return numbers && *cell.number < *value;
      case Condition::Is::LessOrEqual:
        return numbers && *cell.number <= *value;
      case Condition::Is::Greater:
        return numbers && *cell.number > *value;
      case Condition::Is::GreaterOrEqual:
        break;
    }
    return numbers && *cell.number >= *value;
  };
  std::erase_if(table.rows, [&](const auto& row) { return !holds(row); });
  return {};
}

}  // namespace trainyard::report

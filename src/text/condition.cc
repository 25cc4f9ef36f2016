#include "text/condition.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <expected>

#include <fmt/format.h>

#include "base/number_text.h"

namespace trainyard::text {

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
    return std::unexpected(Error{fmt::format(
        "'{}' is not a valid condition; write it as in 'lr<1e-3' or 'status=FINISHED'", text)});
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
  if (by_size && condition.value.empty()) {
    return std::unexpected(
        Error{fmt::format("'{}': a value is missing after '{}'", text, sign->text)});
  }
  if (by_size && !number_of(condition.value)) {
    const std::size_t unit = condition.value.find_first_not_of("+-.0123456789");
    // A second condition behind the number is no unit.
    const bool has_unit = number_in(condition.value.substr(0, unit)).has_value() &&
                          condition.value.find_first_of(" <>=") == std::string::npos;
    return std::unexpected(
        Error{fmt::format("'{}': '{}' is not a number{}", text, condition.value,
                          has_unit ? "; write it without a unit, a time in seconds" : "")});
  }
  return condition;
}

std::optional<double> number_of(std::string_view value) {
  if (!value.ends_with('%')) return number_in(value);
  value.remove_suffix(1);
  while (value.ends_with(' ')) value.remove_suffix(1);
  if (!number_in(value) || value.find_first_of("eE") != std::string_view::npos) return {};
  // Read with its exponent, the number is the nearest one: 86.8 / 100 may be another.
  return number_in(fmt::format("{}e-2", value));
}

bool holds(Condition::Is is, double number, double other) {
  switch (is) {
    case Condition::Is::Equal:
      return number == other;
    case Condition::Is::Unequal:
      return number != other;
    case Condition::Is::Less:
      return number < other;
    case Condition::Is::LessOrEqual:
      return number <= other;
    case Condition::Is::Greater:
      return number > other;
    case Condition::Is::GreaterOrEqual:
      break;
  }
  return number >= other;
}

}  // namespace trainyard::text

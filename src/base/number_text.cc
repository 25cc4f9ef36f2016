#include "base/number_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>
#include <utility>

#include <fmt/format.h>

namespace trainyard {
namespace {

/// "7" of "007", "-7" of "-07"; nothing for what is no whole number in digits.
std::optional<std::string> whole_digits(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  const auto is_digit = [](char byte) { return byte >= '0' && byte <= '9'; };
  if (text.empty() || !std::ranges::all_of(text, is_digit)) return std::nullopt;
  text.remove_prefix(std::min(text.find_first_not_of('0'), text.size() - 1));
  return fmt::format("{}{}", negative && text != "0" ? "-" : "", text);
}

}  // namespace

std::optional<double> number_in(std::string_view text) {
  double number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc{} || end != text.data() + text.size() || !std::isfinite(number)) {
    return std::nullopt;
  }
  return number;
}

std::string same_number_text(std::string_view text, double number) {
  std::optional<std::string> digits = whole_digits(text);
  if (digits && fmt::format("{:.0f}", number) != *digits) return *std::move(digits);
  // -0.0 is 0.
  return fmt::format("{}", number == 0 ? 0.0 : number);
}

std::strong_ordering compare_numbers(const WrittenNumber& one, const WrittenNumber& other) {
  if (one.number < other.number) return std::strong_ordering::less;
  if (one.number > other.number) return std::strong_ordering::greater;
  constexpr double kEveryWholeNumberMax = 9'007'199'254'740'992;
  if (std::abs(one.number) < kEveryWholeNumberMax) return std::strong_ordering::equal;
  const auto digits_of = [](const WrittenNumber& written) {
    return whole_digits(written.text).value_or(fmt::format("{:.0f}", written.number));
  };
  const std::string digits = digits_of(one);
  const std::string others = digits_of(other);
  // Both have the same sign. Without zeros in front, the longer one is the larger one.
  const std::strong_ordering by_size =
      digits.size() == others.size() ? digits <=> others : digits.size() <=> others.size();
  return one.number < 0 ? 0 <=> by_size : by_size;
}

}  // namespace trainyard

// Numbers as people write them. Pure; any thread.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace trainyard {

/// The number that all of the text is, however it is written: "0.001" and "1e-3" are the same one.
/// Nothing for what is none: "", "1e-3 ", "0x10", "nan", "inf", and what a double cannot hold.
std::optional<double> number_in(std::string_view text);

/// One text for all texts of one number, which is `number` as number_in() reads it: "0.001" for
/// "1e-3". A whole number that no double is, as many above 2^53, is its digits.
std::string same_number_text(std::string_view text, double number);

/// A number as it is written, and as number_in() reads that.
struct WrittenNumber {
  std::string_view text;
  double number = 0;
};

/// How two numbers compare: by their digits where they are whole and one double, as many above
/// 2^53 are. Precondition: neither is NaN or infinite.
std::strong_ordering compare_numbers(const WrittenNumber& one, const WrittenNumber& other);

/// The next number with at most two digits that are not 0: 1,234 becomes 1,300. Precondition: 0 to
/// 9 * 10^18.
constexpr std::int64_t up_to_two_digits(std::int64_t value) {
  std::int64_t step = 1;
  while (value / step >= 100) step *= 10;
  return (value + step - 1) / step * step;
}

}  // namespace trainyard

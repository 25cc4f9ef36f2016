// Numbers as people write them. Pure; any thread.
#pragma once

#include <compare>
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

}  // namespace trainyard

// Numbers as people write them. Pure; any thread.
#pragma once

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

/// False where both texts are whole numbers in digits, and are different ones. Others may be the
/// same number: that is for number_in() to say.
bool same_whole_number(std::string_view one, std::string_view other);

}  // namespace trainyard

// Numbers as people write them. Pure; any thread.
#pragma once

#include <optional>
#include <string_view>

namespace trainyard {

/// The number that all of the text is, however it is written: "0.001" and "1e-3" are the same one.
/// Nothing for what is none: "", "1e-3 ", "0x10", "nan", "inf", and what a double cannot hold.
std::optional<double> number_in(std::string_view text);

}  // namespace trainyard

// Checks of the numbers that options take, with messages that name the number.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace trainyard::cli {

/// The message about a value that is not right; empty for a right one.
using ValueCheck = std::function<std::string(const std::string& typed)>;

/// "'two' is not a whole number from 1 to 4096"
ValueCheck whole_number_within(std::int64_t least, std::int64_t most);

/// "'2' is not a number from 0 to 1"
ValueCheck number_within(double least, double most);

}  // namespace trainyard::cli

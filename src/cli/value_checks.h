// Checks of values that options take, with messages that name the value.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/time.h"
#include "settings/configuration.h"

namespace trainyard::cli {

/// The message about a value that is not right; empty for a right one.
using ValueCheck = std::function<std::string(const std::string& typed)>;

/// "'two' is not a whole number from 1 to 4096"
ValueCheck whole_number_within(std::int64_t least, std::int64_t most);

/// "'2' is not a number from 0 to 1"
ValueCheck number_within(double least, double most);

/// "'10' has no unit (did you mean '10s' or '10m'?)", "'2d' is not a time from 0 s to 1d". A value
/// that passes can be read by parse_duration().
ValueCheck time_within(Duration least, Duration most);

/// For an option of a setting: the mistake in its value.
ValueCheck value_of_setting(settings::Setting setting);

}  // namespace trainyard::cli

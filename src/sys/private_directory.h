// A directory of our user's that nobody else may look into. Any thread.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace trainyard::sys {

/// Makes it and those above it where they are missing. An error where it is another user's, or may
/// not be written.
Result<void> make_own_directory(const std::string& path);

/// The number of the user that we are.
std::uint32_t own_user();

}  // namespace trainyard::sys

// A directory of our user that no other user may look into. Any thread.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace trainyard::sys {

/// Makes it and those above it where they are missing, and makes it private (mode 0700). An error
/// where it is another user's, is a link, is on a file system that another user has mounted, or
/// cannot be written. Links above it are followed.
Result<void> make_own_directory(const std::string& path);

/// The number of the user that we are.
std::uint32_t own_user();

}  // namespace trainyard::sys

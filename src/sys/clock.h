// The wall clock. For people only: what decides or measures uses EventLoop::now(), which nobody can
// set back. Any thread.
#pragma once

#include <cstdint>

namespace trainyard::sys {

/// Milliseconds since 1970 in UTC.
std::int64_t unix_milliseconds();

}  // namespace trainyard::sys

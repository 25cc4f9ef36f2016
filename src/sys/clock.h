// The wall clock. Only for texts for people: decisions and measurements use EventLoop::now(), which
// nobody can set back. Any thread.
#pragma once

#include <cstdint>

namespace trainyard::sys {

/// Milliseconds since 1970 in UTC.
std::int64_t unix_milliseconds();

/// The day of the week here, 0 is Monday, and the minute of the day.
struct LocalTime {
  int day = 0;
  int minute = 0;
};
LocalTime local_time();

/// When the present day began where we are, in seconds since 1970 in UTC.
std::int64_t last_midnight_unix_s();

}  // namespace trainyard::sys

// The wall clock, only for texts for people: decisions and measurements use EventLoop::now(), which
// nobody can set back. And the time since this machine was started, including the time that it
// slept, for deadlines that end even while the machine sleeps. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/time.h"
#include "sys/descriptor.h"

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

/// CLOCK_BOOTTIME: the same for all processes of a machine.
Duration boot_clock();

/// The boot of this machine and the set of its processes that can be seen from here. Two equal
/// names mean the same running processes. Never empty.
std::string name_of_this_boot();

/// Becomes readable once a moment of that clock has come. No moment is set at first.
class BootAlarm {
 public:
  /// An error where the kernel has no such timer for us.
  static Result<BootAlarm> make();

  /// Sets the moment, which may be over; an earlier setting no longer applies.
  void set(Duration at) const;
  [[nodiscard]] const Descriptor& descriptor() const { return timer_; }

 private:
  explicit BootAlarm(Descriptor timer) : timer_(std::move(timer)) {}

  Descriptor timer_;
};

}  // namespace trainyard::sys

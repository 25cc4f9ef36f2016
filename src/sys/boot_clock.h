// The time since this machine was started, including the time that it slept: for deadlines that end
// even while the machine sleeps. Any thread.
#pragma once

#include <string>
#include <utility>

#include "base/result.h"
#include "base/time.h"
#include "sys/descriptor.h"

namespace trainyard::sys {

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

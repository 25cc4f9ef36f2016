// The time since this machine was started, in which the time counts that it slept: for promises
// that end whether anybody was awake or not. Any thread.
#pragma once

#include <string>
#include <utility>

#include "base/result.h"
#include "base/time.h"
#include "sys/descriptor.h"

namespace trainyard::sys {

/// CLOCK_BOOTTIME: the same for all processes of a machine.
Duration boot_clock();

/// Which boot of which machine this is, and which of its processes can be seen from here: where it
/// is the same, so is what runs. Never empty.
std::string name_of_this_boot();

/// Can be read once a moment of that clock has come, which is none at first.
class BootAlarm {
 public:
  /// An error where the kernel has no such timer for us.
  static Result<BootAlarm> make();

  /// At that moment, which may be over; whatever was set before is not any more.
  void set(Duration at) const;
  [[nodiscard]] const Descriptor& descriptor() const { return timer_; }

 private:
  explicit BootAlarm(Descriptor timer) : timer_(std::move(timer)) {}

  Descriptor timer_;
};

}  // namespace trainyard::sys

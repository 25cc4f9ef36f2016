// A process held by a descriptor: unlike its number, it never comes to mean another one.
//
// Does not own the process: it goes on when the descriptor is closed. Any thread.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "sys/descriptor.h"

namespace trainyard::sys {

/// Closed, with errno, when there is no such process or there are no more descriptors.
Descriptor open_pidfd(std::int64_t pid);

/// Waits until the process has ended, at most `most`; false when it had not. It may still have to
/// be reaped.
bool wait_until_ended(const Descriptor& pidfd, Duration most);

/// A process that has ended is no error.
void send_signal(const Descriptor& pidfd, int signal);

}  // namespace trainyard::sys

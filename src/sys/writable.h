// Waits for room in a socket. No state; any thread.
#pragma once

#include <chrono>

namespace trainyard::sys {

/// False if it is not writable in time. True also when the other end is closed.
bool wait_until_writable(int descriptor, std::chrono::milliseconds at_most);

}  // namespace trainyard::sys

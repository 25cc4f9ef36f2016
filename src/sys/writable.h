// Waits for room in a socket. No state; any thread.
#pragma once

#include <chrono>

namespace trainyard::sys {

/// False when it has not come in time. True also when nobody is at the other end any more.
bool wait_until_writable(int descriptor, std::chrono::milliseconds at_most);

}  // namespace trainyard::sys

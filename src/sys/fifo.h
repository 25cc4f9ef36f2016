// A named pipe by which programs of one user say words to a process of theirs that lives on.
//
// Not for answers: what became of a word shows in what the process does. Any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "sys/descriptor.h"

namespace trainyard::sys {

/// Makes the FIFO if it does not exist, for our user alone, and opens it: to be watched, and read
/// by read_waiting(). Becomes readable when a process has written.
Result<Descriptor> open_fifo(const std::string& path);

/// All that waits there, at most 64 kB.
std::string read_waiting(const Descriptor& fifo);

/// Sends a word of at most 4 kB. False if no process reads the FIFO, or there is no room for more:
/// the reader is suspended.
bool tell_fifo(const std::string& path, std::string_view word);

}  // namespace trainyard::sys

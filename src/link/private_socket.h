// A Unix socket under a name that is known beforehand, in a directory of our user's alone: an agent
// listens there, and what a stream begins with on its machine connects to it.
//
// No state; any thread.
#pragma once

#include <string>

#include "base/result.h"
#include "sys/descriptor.h"

namespace trainyard::link {

/// Listens there, in the place of one that a dead server has left. An error where a living one
/// does, and where the path is too long.
Result<sys::Descriptor> listen_privately(const std::string& path);

/// A connection to whoever listens there; an error where nobody does.
Result<sys::Descriptor> connect_privately(const std::string& path);

/// The next one who has connected; not open where that one has gone again.
sys::Descriptor accept_from(const sys::Descriptor& listener);

}  // namespace trainyard::link

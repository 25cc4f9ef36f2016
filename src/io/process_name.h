// What `ps`, `top` and `pkill` call this process.
#pragma once

#include <string>

namespace trainyard::io {

/// Puts `name` (at most 15 bytes) in the place of the program's name and of its whole command line.
/// For a fresh fork that is not the program any more: what the command line was is lost.
void rename_process(const std::string& name);

}  // namespace trainyard::io

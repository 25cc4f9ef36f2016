// The actions of logind when a user logs out, read from its files. Any thread.
#pragma once

#include <string>

namespace trainyard::sys {

/// Whether the processes of a user are killed then: KillUserProcesses is on, and the user does not
/// linger. `root` is put before all paths: empty, the files of this machine.
bool ends_at_logout(const std::string& root, const std::string& user);

}  // namespace trainyard::sys

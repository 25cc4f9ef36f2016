// What logind does when a user logs out, by its files. Any thread.
#pragma once

#include <string>

namespace trainyard::sys {

/// Whether what a user has started is ended then: KillUserProcesses is on, and the user does not
/// linger. `root` stands before all paths: empty, the files of this machine.
bool ends_at_logout(const std::string& root, const std::string& user);

}  // namespace trainyard::sys

// What a process that was forked for one purpose does first, so that nobody waits for it and
// nothing of its parent stays open because of it.
#pragma once

namespace trainyard::sys {

/// Where a lone process has its socket.
constexpr int kLoneSocket = 3;

struct LoneProcess {
  int socket = -1;        ///< Of what it has from its parent this alone stays, as kLoneSocket.
  const char* name = "";  ///< What `ps` calls it, at most 15 bytes.
  bool ends_with_parent = true;  ///< Else it lives until it ends itself.
};

/// In the fork: it has a session of its own, so that Ctrl-C and a lost terminal are for its parent
/// alone, and standard streams that lead nowhere. False where it cannot have its socket.
bool become_alone(const LoneProcess& process);

}  // namespace trainyard::sys

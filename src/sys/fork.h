// The first steps of a fork that becomes another program or serves one purpose. Any thread.
#pragma once

#include <string>
#include <vector>

namespace trainyard::sys {

/// Arguments for execv(3): pointers to the texts, which must stay where they are, and a null
/// pointer.
std::vector<char*> pointers_to(const std::vector<std::string>& texts);

/// All signals do what they do by default, and none is blocked. In a fork.
void make_signals_default();

/// The descriptor of a lone process's socket.
constexpr int kLoneSocket = 3;

/// A process that was forked for one purpose: its parent does not wait for its end, and it keeps
/// none of its parent's descriptors open but one.
struct LoneProcess {
  int socket = -1;        ///< The one descriptor that it keeps from its parent, as kLoneSocket.
  const char* name = "";  ///< The name that `ps` shows, at most 15 bytes.
  bool ends_with_parent = true;  ///< Else it lives until it ends itself.
};

/// In the fork: it has a session of its own, so that Ctrl-C and a lost terminal are for its parent
/// alone, and standard streams that lead nowhere. False where it cannot have its socket.
bool become_alone(const LoneProcess& process);

}  // namespace trainyard::sys

// Unix sockets that only their user can reach: control sockets, each in a dedicated directory, and
// sockets under a name that is known beforehand.
//
// Makes, finds and removes them; their messages are those of link/control_server.h and
// link/control_client.h. No state; any thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <sys/socket.h>
#include <sys/un.h>

#include "base/result.h"
#include "sys/descriptor.h"

namespace trainyard::link {

/// The address of a Unix socket; an error when the path is empty or longer than the 107 bytes it
/// may have.
Result<sockaddr_un> socket_address(const std::string& path);

/// The same address, as the socket calls want it.
const sockaddr* generic(const sockaddr_un& address);

/// A Unix socket that others connect to, non-blocking.
Result<sys::Descriptor> listen_at(const std::string& path);

/// Where a socket's directory may be: $XDG_RUNTIME_DIR, $TMPDIR (those that are set), /tmp.
std::vector<std::string> socket_parents();

/// The control sockets of our user on this machine, wherever their directories are: also those of
/// processes with another XDG_RUNTIME_DIR. Sockets of killed servers may be among them.
std::vector<std::string> control_sockets();

/// One of these, and where it is.
struct ControlSocket {
  sys::Descriptor socket;
  std::string path;
};

/// Called with a directory before it is made, so that it can be removed if we are killed.
using BeforeMade = std::function<void(const std::string& directory)>;

/// Makes <parent>/trainyard-XXXXXX/control in the first parent that is there, ours or root's, short
/// enough, writable, and either sticky or writable for its owner alone, and listens. An error gives
/// the reason for each. Removes the sockets of killed servers in that parent: sockets of ours that
/// refuse connections, in directories of such a name. `before_made` may be missing.
Result<ControlSocket> listen_in_one_of(const std::vector<std::string>& parents,
                                       const BeforeMade& before_made = nullptr);

/// Removes a socket that was made so, and its directory.
void remove_socket(const std::string& path);

/// Removes a socket that a dead server left, and its directory; true if it is gone. A socket stays
/// if its server is alive, if it belongs to another user, or if it is not named as above.
bool remove_dead_socket(const std::string& path);

/// Listens at a path that is known beforehand, in a directory that only our user can enter, in the
/// place of a socket that a dead server has left. An agent listens so. An error if a living server
/// listens there, or the path is too long.
Result<sys::Descriptor> listen_privately(const std::string& path);

/// A connection to the server that listens there; an error if none does.
Result<sys::Descriptor> connect_privately(const std::string& path);

/// The next one who has connected; not open where that one has gone again.
sys::Descriptor accept_from(const sys::Descriptor& listener);

}  // namespace trainyard::link

#include "link/private_socket.h"

#include <cerrno>
#include <expected>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <fmt/format.h>

#include "link/control_socket.h"

namespace trainyard::link {

Result<sys::Descriptor> listen_privately(const std::string& path) {
  if (const Result<sockaddr_un> address = socket_address(path); !address) {
    return std::unexpected(address.error());
  }
  if (connect_privately(path)) {
    return std::unexpected(Error{fmt::format("somebody listens at '{}' already", path)});
  }
  ::unlink(path.c_str());
  return listen_at(path);
}

Result<sys::Descriptor> connect_privately(const std::string& path) {
  const Result<sockaddr_un> address = socket_address(path);
  if (!address) return std::unexpected(address.error());
  sys::Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.is_open() || ::connect(socket.get(), generic(*address), sizeof *address) != 0) {
    return std::unexpected(sys::system_error(fmt::format("cannot connect to '{}'", path), errno));
  }
  return socket;
}

sys::Descriptor accept_from(const sys::Descriptor& listener) {
  return sys::Descriptor(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
}

}  // namespace trainyard::link

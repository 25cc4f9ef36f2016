#include "io/control_socket.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/result.h"
#include "io/descriptor.h"
#include "io/environment.h"

namespace trainyard::io {
namespace {

constexpr std::string_view kDirectoryPrefix = "trainyard-";
constexpr std::string_view kSocketName = "/control";

Result<std::string> make_directory(const std::string& parent) {
  if (!parent.starts_with('/')) {
    return std::unexpected(Error{fmt::format("'{}' is not an absolute path", parent)});
  }
  std::string path = fmt::format("{}/{}XXXXXX", parent, kDirectoryPrefix);
  // Asked before the directory is there, so that nothing must be taken back.
  auto address = socket_address(path + std::string(kSocketName));
  if (!address) return std::unexpected(std::move(address.error()));
  struct stat status{};
  if (::stat(parent.c_str(), &status) != 0) {
    return std::unexpected(system_error(fmt::format("cannot look at '{}'", parent), errno));
  }
  // Whoever owns the parent could put a directory of theirs in the place of ours.
  if (status.st_uid != ::geteuid() && status.st_uid != 0) {
    return std::unexpected(Error{fmt::format("'{}' belongs to another user", parent)});
  }
  // NOLINTNEXTLINE(misc-include-cleaner): cstdlib has it.
  if (::mkdtemp(path.data()) == nullptr) {
    return std::unexpected(
        system_error(fmt::format("cannot make a directory in '{}'", parent), errno));
  }
  return path;
}

Result<Descriptor> listen_at(const std::string& path) {
  const auto address = socket_address(path);
  if (!address) return std::unexpected(address.error());
  Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open() || ::bind(socket.get(), generic(*address), sizeof *address) != 0 ||
      ::listen(socket.get(), SOMAXCONN) != 0) {
    return std::unexpected(system_error(fmt::format("cannot listen at '{}'", path), errno));
  }
  return socket;
}

std::string directory_of(const std::string& path) {
  return path.substr(0, path.size() - kSocketName.size());
}

}  // namespace

Result<sockaddr_un> socket_address(const std::string& path) {
  sockaddr_un address{};
  // Without a name it would be bound to one that Linux makes up, and connected to nobody.
  if (path.empty()) return std::unexpected(Error{"a socket needs a path"});
  if (path.size() >= sizeof address.sun_path) {
    return std::unexpected(Error{fmt::format("'{}' is too long for a socket", path)});
  }
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

const sockaddr* generic(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

std::vector<std::string> socket_parents() {
  std::vector<std::string> parents;
  for (const char* const name : {"XDG_RUNTIME_DIR", "TMPDIR"}) {
    if (auto value = variable(name)) parents.push_back(*std::move(value));
  }
  parents.emplace_back("/tmp");
  return parents;
}

Result<ControlSocket> listen_in_one_of(const std::vector<std::string>& parents) {
  std::string why;
  for (const std::string& parent : parents) {
    const auto directory = make_directory(parent);
    std::string path = directory ? *directory + std::string(kSocketName) : std::string();
    auto socket = directory ? listen_at(path) : std::unexpected(directory.error());
    if (socket) return ControlSocket{.socket = std::move(*socket), .path = std::move(path)};
    if (directory) remove_socket(path);
    why += (why.empty() ? "" : "; ") + socket.error().message;
  }
  return std::unexpected(Error{"no place for the control socket: " + why});
}

void remove_socket(const std::string& path) {
  // Nobody can act on an error: the directory may have been cleaned away already.
  static_cast<void>(::unlink(path.c_str()));
  static_cast<void>(::rmdir(directory_of(path).c_str()));
}

bool remove_dead_socket(const std::string& path) {
  const auto address = socket_address(path);
  if (!address || !path.ends_with(kSocketName)) return false;
  const std::string directory = directory_of(path);
  if (!directory.substr(directory.rfind('/') + 1).starts_with(kDirectoryPrefix)) return false;
  struct stat status{};
  if (::lstat(directory.c_str(), &status) != 0 || status.st_uid != ::geteuid()) return false;
  const Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open()) return false;
  const int connected = ::connect(socket.get(), generic(*address), sizeof *address);
  if (connected == 0 || (errno != ECONNREFUSED && errno != ENOENT)) return false;
  remove_socket(path);
  return ::lstat(directory.c_str(), &status) != 0;
}

}  // namespace trainyard::io

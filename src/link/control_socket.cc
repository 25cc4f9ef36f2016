#include "link/control_socket.h"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <expected>
#include <filesystem>
#include <fstream>
#include <map>
#include <ranges>
#include <string_view>
#include <system_error>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "sys/clock.h"
#include "sys/environment.h"
#include "sys/files.h"
#include "sys/foreign_mounts.h"
#include "sys/token.h"

namespace trainyard::link {
namespace {

constexpr std::string_view kDirectoryPrefix = "trainyard-";
constexpr std::string_view kSocketName = "/control";
/// How much of a random token stands behind the prefix.
constexpr std::size_t kRandomPart = 6;
/// So many names are tried where others have taken them.
constexpr int kNamesMax = 100;
/// So many entries of a directory are looked at for what the dead left there.
constexpr int kLookedAtMax = 4'096;

/// Why a socket's directory may not be in there, if so.
Result<void> check_parent(const std::string& parent) {
  if (!parent.starts_with('/')) {
    return std::unexpected(Error{fmt::format("'{}' is not an absolute path", parent)});
  }
  struct stat status{};
  if (::stat(parent.c_str(), &status) != 0) {
    return std::unexpected(sys::system_error(fmt::format("cannot look at '{}'", parent), errno));
  }
  // Whoever owns the parent could put a directory of theirs in the place of ours.
  if (status.st_uid != ::geteuid() && status.st_uid != 0) {
    return std::unexpected(Error{fmt::format("'{}' belongs to another user", parent)});
  }
  // Users who may write to a parent that is not sticky could replace the directory, too.
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0 && (status.st_mode & S_ISVTX) == 0) {
    return std::unexpected(
        Error{fmt::format("others may rename what is in '{}' (mode {:04o}: it is not sticky)",
                          parent, status.st_mode & 07777U)});
  }
  return {};
}

std::string directory_of(const std::string& path) {
  return path.substr(0, path.size() - kSocketName.size());
}

/// The names of a directory before its socket listens, and from then on.
struct Names {
  std::string fresh;
  std::string lasting;
};

/// Makes one under an unused fresh name whose lasting name is unused, too: `before_made` gets the
/// name first, so it must not be that of another directory.
Result<Names> make_directory(const std::function<Names(std::string_view random)>& named,
                             const BeforeMade& before_made) {
  int error = EEXIST;
  for (int tries = 0; error == EEXIST && tries < kNamesMax; ++tries) {
    Names names = named(sys::random_token().substr(0, kRandomPart));
    struct stat status{};
    const bool taken =
        ::lstat(names.fresh.c_str(), &status) == 0 || ::lstat(names.lasting.c_str(), &status) == 0;
    if (taken) continue;
    if (before_made) {
      before_made(names.fresh);
      before_made(names.lasting);
    }
    if (::mkdir(names.fresh.c_str(), 0700) == 0) return names;
    error = errno;
  }
  return std::unexpected(sys::system_error("cannot make a directory", error));
}

/// Makes the directory under a name that nobody looks for, and gives it its own when the socket in
/// it listens: under that one a socket that refuses connections has no server any more.
Result<ControlSocket> listen_in(const std::string& parent, const BeforeMade& before_made) {
  const auto named = [&parent](std::string_view dot, std::string_view random) {
    return fmt::format("{}/{}{}{}", parent, dot, kDirectoryPrefix, random);
  };
  // Asked before the directory is there, so that nothing must be taken back.
  const std::string longest = named(".", std::string(kRandomPart, 'x'));
  if (auto address = socket_address(longest + std::string(kSocketName)); !address) {
    return std::unexpected(std::move(address.error()));
  }
  if (Result<void> good = check_parent(parent); !good) {
    return std::unexpected(std::move(good.error()));
  }
  Result<Names> names = make_directory(
      [&named](std::string_view random) {
        return Names{.fresh = named(".", random), .lasting = named("", random)};
      },
      before_made);
  if (!names) return std::unexpected(std::move(names.error()).in(fmt::format("'{}'", parent)));
  auto socket = listen_at(names->fresh + std::string(kSocketName));
  if (socket && ::rename(names->fresh.c_str(), names->lasting.c_str()) != 0) {
    socket = std::unexpected(
        sys::system_error(fmt::format("cannot rename a directory in '{}'", parent), errno));
  }
  if (!socket) {
    remove_socket(names->fresh + std::string(kSocketName));
    return std::unexpected(std::move(socket.error()));
  }
  return ControlSocket{.socket = std::move(*socket),
                       .path = names->lasting + std::string(kSocketName)};
}

/// Whether a socket of ours may be in it. Any user may have put a link or a file system there that
/// does not answer.
bool is_own_directory(const std::string& path) {
  const auto facts = sys::entry_facts(path);
  return facts && S_ISDIR(facts->mode) && facts->owner == ::geteuid();
}

/// Made an hour ago or before: a server makes its directory and listens in a moment.
bool is_old(const struct stat& status) {
  constexpr std::int64_t kHour = 3'600'000;
  return sys::unix_milliseconds() - (std::int64_t{status.st_mtim.tv_sec} * 1000) > kHour;
}

/// Removes the sockets of ours that were left by servers that were killed.
void remove_dead_sockets(const std::string& parent) {
  std::error_code error;
  std::filesystem::directory_iterator entry(parent, error);
  for (int looked_at = 0;
       !error && entry != std::filesystem::directory_iterator{} && looked_at < kLookedAtMax;
       entry.increment(error), ++looked_at) {
    std::string_view name = entry->path().native();
    name.remove_prefix(name.rfind('/') + 1);
    const bool fresh = name.starts_with('.');
    if (fresh) name.remove_prefix(1);
    if (!name.starts_with(kDirectoryPrefix) ||
        name.size() != kDirectoryPrefix.size() + kRandomPart) {
      continue;
    }
    if (!is_own_directory(entry->path())) continue;
    const std::string path = entry->path().string() + std::string(kSocketName);
    struct stat status{};
    // A directory of a fresh name may be that of a server which does not listen yet.
    const bool is_socket = ::lstat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode);
    if (is_socket && (!fresh || is_old(status))) remove_dead_socket(path);
  }
}

}  // namespace

Result<sys::Descriptor> listen_at(const std::string& path) {
  const auto address = socket_address(path);
  if (!address) return std::unexpected(address.error());
  sys::Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open() || ::bind(socket.get(), generic(*address), sizeof *address) != 0 ||
      ::listen(socket.get(), SOMAXCONN) != 0) {
    return std::unexpected(sys::system_error(fmt::format("cannot listen at '{}'", path), errno));
  }
  return socket;
}

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
    if (auto value = sys::variable(name)) parents.push_back(*std::move(value));
  }
  parents.emplace_back("/tmp");
  return parents;
}

std::vector<std::string> control_sockets() {
  std::vector<std::string> directories;
  // These may be shared with processes whose sockets the kernel does not show to us.
  for (const std::string& parent : socket_parents()) {
    for (const std::string& name : sys::names_in(parent))
      directories.push_back(fmt::format("{}/{}", parent, name));
  }
  const auto foreign = sys::ForeignMounts::read();
  std::ifstream bound("/proc/net/unix");
  for (std::string line; std::getline(bound, line);) {
    const std::size_t at = line.find('/');
    if (at == std::string::npos || !line.ends_with(kSocketName)) continue;
    // The directory was renamed when its socket had been bound.
    const std::filesystem::path fresh = std::filesystem::path(line.substr(at)).parent_path();
    std::string name = fresh.filename();
    if (name.starts_with('.')) name.erase(0, 1);
    if (!name.starts_with(kDirectoryPrefix)) continue;
    if (auto place = foreign.place_of(fresh.parent_path() / name)) directories.push_back(*place);
  }
  std::map<std::string, std::string> sockets;  // By where they are: each may have several paths.
  for (const std::string& directory : directories) {
    if (!directory.substr(directory.rfind('/') + 1).starts_with(kDirectoryPrefix)) continue;
    if (!is_own_directory(directory)) continue;
    const std::string socket = directory + std::string(kSocketName);
    struct stat status{};
    if (::lstat(socket.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode)) continue;
    if (status.st_uid != ::geteuid()) continue;
    std::error_code error;
    const auto place = std::filesystem::canonical(socket, error);
    if (!error) sockets.emplace(place, socket);
  }
  const auto paths = std::views::values(sockets);
  return {paths.begin(), paths.end()};
}

Result<ControlSocket> listen_in_one_of(const std::vector<std::string>& parents,
                                       const BeforeMade& before_made) {
  std::string why;
  for (const std::string& parent : parents) {
    auto made = listen_in(parent, before_made);
    if (made) {
      remove_dead_sockets(parent);
      return made;
    }
    why += (why.empty() ? "" : "; ") + made.error().message;
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
  std::string_view name = std::string_view(directory).substr(directory.rfind('/') + 1);
  if (name.starts_with('.')) name.remove_prefix(1);
  if (!name.starts_with(kDirectoryPrefix)) return false;
  if (!is_own_directory(directory)) return false;
  // Connecting a socket of another kind shows whether a server is there, without a connection: a
  // running server must not have to serve each check.
  const sys::Descriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open()) return false;
  const int connected = ::connect(socket.get(), generic(*address), sizeof *address);
  if (connected == 0 || (errno != ECONNREFUSED && errno != ENOENT)) return false;
  remove_socket(path);
  return !sys::entry_facts(directory);
}

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

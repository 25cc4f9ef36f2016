#include "process/port_lease.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <expected>
#include <utility>

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "hardware/cgroup.h"
#include "sys/files.h"
#include "sys/open_file.h"
#include "sys/private_directory.h"

namespace trainyard::process {
namespace {

constexpr mode_t kForAll = 0666;
constexpr mode_t kLikeTmp = 01777;

/// The last port that the kernel does not give to who asks for any.
int below_ephemeral(int last) {
  const std::string range = hardware::read_small_file("/proc/sys/net/ipv4/ip_local_port_range");
  const int first = std::atoi(range.c_str());  // NOLINT(cert-err34-c): 0 when it is not there.
  return first > 0 ? std::min(last, first - 1) : last;
}

/// A link to a directory is none: another user may have put it there, and it names what is ours.
bool is_directory_itself(const std::string& path) {
  const auto about = sys::entry_facts(path);
  return about && S_ISDIR(about->mode);
}

bool is_free(int port) {
  const sys::Descriptor probe(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  // Connections of an earlier group in TIME_WAIT must not prevent the next bind.
  const int yes = 1;
  ::setsockopt(probe.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  return ::bind(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
         ::listen(probe.get(), 1) == 0;
}

}  // namespace

Result<PortLease> PortLease::take(const Range& range) {
  const std::string& directory = range.directory;
  if (::mkdir(directory.c_str(), kLikeTmp) == 0) ::chmod(directory.c_str(), kLikeTmp);
  // A second ledger would give out again what is leased by the first.
  if (is_directory_itself(directory) && ::access(directory.c_str(), W_OK | X_OK) == 0) {
    return take_in(range);
  }
  // Another user has made the directory private, or has put something else there.
  Range own = range;
  own.directory += fmt::format("-{}", sys::own_user());
  if (Result<void> made = sys::make_own_directory(own.directory); !made) {
    return std::unexpected(std::move(made.error()));
  }
  return take_in(own);
}

Result<PortLease> PortLease::take_in(const Range& range) {
  // If the kernel gives out the whole range, another process may still take a port before it is
  // bound.
  const int below = below_ephemeral(range.last);
  const int last = below < range.first ? range.last : below;
  for (int port = range.first; port <= last; ++port) {
    const std::string path = fmt::format("{}/{}", range.directory, port);
    // A file system that another user has mounted there may not answer.
    if (const auto there = sys::entry_facts(path); !there && there.error() == EXDEV) continue;
    // Without O_CREAT first: in a directory like this the kernel refuses it for others' files.
    auto file = sys::open_file(path, {});
    if (!file && file.error().number == ENOENT) {
      // Exclusively: the mode of a file that another user has just linked here must stay as it is.
      file = sys::open_file(path, {.flags = O_RDONLY | O_CREAT | O_EXCL, .mode = kForAll});
      if (file) ::fchmod(file->descriptor.get(), kForAll);
    }
    // Anything that a user may have put there instead of a file costs that port alone.
    if (!file || ::flock(file->descriptor.get(), LOCK_EX | LOCK_NB) != 0) continue;
    if (is_free(port)) return PortLease(port, std::move(file->descriptor));
  }
  return std::unexpected(Error{fmt::format("no port from {} to {} is free", range.first, last)});
}

}  // namespace trainyard::process

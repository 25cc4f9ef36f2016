#include "sys/pump.h"

#include <array>
#include <cerrno>
#include <cstddef>
#include <span>

#include <poll.h>
#include <sys/types.h>
#include <unistd.h>

namespace trainyard::sys {
namespace {

/// False: the receiver is gone.
bool write_all(int to, std::span<const char> bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(to, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && errno == EAGAIN) {
      pollfd room{.fd = to, .events = POLLOUT, .revents = 0};
      static_cast<void>(::poll(&room, 1, -1));
      continue;
    }
    if (put <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
  return true;
}

/// Carries the bytes that are there now. Returns false when no more will come.
bool carry(Way way) {
  std::array<char, 65536> buffer;  // NOLINT(*-member-init): written by read, and large.
  const ssize_t got = ::read(way.from, buffer.data(), buffer.size());
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  if (got == 0) return false;
  return write_all(way.to, std::span(buffer).first(static_cast<std::size_t>(got)));
}

}  // namespace

void pump(Way there, Way back) {
  std::array<pollfd, 2> ends{{{.fd = there.from, .events = POLLIN, .revents = 0},
                              {.fd = back.from, .events = POLLIN, .revents = 0}}};
  for (;;) {
    if (::poll(ends.data(), ends.size(), -1) < 0 && errno != EINTR) return;
    // The other side first: its last bytes are carried even if nobody sends to it any more.
    if (ends[1].revents != 0 && !carry(back)) return;
    if (ends[0].revents != 0 && !carry(there)) return;
  }
}

}  // namespace trainyard::sys

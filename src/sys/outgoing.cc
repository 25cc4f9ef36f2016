#include "sys/outgoing.h"

#include <cerrno>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "sys/passing.h"

namespace trainyard::sys {

bool wait_until_writable(int descriptor, std::chrono::milliseconds at_most) {
  pollfd waiting{.fd = descriptor, .events = POLLOUT, .revents = 0};
  return ::poll(&waiting, 1, static_cast<int>(at_most.count())) > 0;
}

void Outgoing::add(std::string_view bytes, const std::vector<int>& descriptors) {
  if (!descriptors.empty()) {
    Attached& added = attached_.emplace_back(Attached{.at = bytes_.size()});
    for (const int descriptor : descriptors) {
      // If there is no room for a copy, sending fails, and that is the end of the receiver.
      added.descriptors.emplace_back(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
    }
  }
  bytes_ += bytes;
}

void Outgoing::send_some(int socket) {
  while (!bytes_.empty()) {
    // Up to the next byte that descriptors go with, or from it on.
    const bool with = !attached_.empty() && attached_.front().at == 0;
    const std::size_t next = with ? 1 : 0;
    std::string_view piece = bytes_;
    if (attached_.size() > next) piece = piece.substr(0, attached_[next].at);
    std::vector<int> descriptors;
    if (with) {
      for (const Descriptor& each : attached_.front().descriptors)
        descriptors.push_back(each.get());
    }
    const ssize_t count = send_with(socket, piece, descriptors, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return;
    if (count < 0) {
      // The receiver has gone without waiting for the answer, as it may. Its earlier messages are
      // still read.
      bytes_.clear();
      attached_.clear();
      return;
    }
    if (with) attached_.pop_front();
    for (Attached& it : attached_) it.at -= static_cast<std::size_t>(count);
    bytes_.erase(0, static_cast<std::size_t>(count));
  }
}

}  // namespace trainyard::sys

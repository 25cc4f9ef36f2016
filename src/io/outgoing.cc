#include "io/outgoing.h"

#include <cerrno>
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/socket.h>
#include <sys/types.h>

#include "io/passing.h"

namespace trainyard::io {

void Outgoing::add(std::string_view bytes, std::vector<int> descriptors) {
  if (!descriptors.empty()) {
    attached_.push_back({.at = bytes_.size(), .descriptors = std::move(descriptors)});
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
    const std::span<const int> descriptors =
        with ? std::span<const int>(attached_.front().descriptors) : std::span<const int>();
    const ssize_t count = send_with(socket, piece, descriptors, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return;
    if (count < 0) {
      // It has gone without waiting for the answer, as it may. What it said before is still read.
      bytes_.clear();
      attached_.clear();
      return;
    }
    if (with) attached_.pop_front();
    for (Attached& it : attached_) it.at -= static_cast<std::size_t>(count);
    bytes_.erase(0, static_cast<std::size_t>(count));
  }
}

}  // namespace trainyard::io

#include "sys/passing.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <expected>

#include <sys/socket.h>
#include <sys/uio.h>

#include "base/check.h"
#include "wire/frame.h"

namespace trainyard::sys {
namespace {

/// Room for as many descriptors as may come at once. The kernel closes those without room in
/// recvmsg(2), and a socket among them may linger.
struct Control {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kPassedMax)> bytes{};
};

/// The last close(2) of a socket that lingers waits for its other end, which may be never. A
/// descriptor that is no socket has no such option.
void do_not_linger(int descriptor) {
  constexpr linger kNot{};
  static_cast<void>(::setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &kNot, sizeof kNot));
}

Result<std::pair<Descriptor, Descriptor>> pair_of(int type) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return std::unexpected(system_error("cannot make a pair of sockets", errno));
  }
  return std::pair{Descriptor(ends[0]), Descriptor(ends[1])};
}

/// A socket reports a reset once; after it come the packets that are there, or the end (0).
ssize_t receive_message(int socket, msghdr& message, int flags) {
  const std::size_t control = message.msg_controllen;
  while (true) {
    message.msg_controllen = control;
    const ssize_t got = ::recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
    if (got >= 0 || errno != ECONNRESET) return got;
  }
}

}  // namespace

Result<std::pair<Descriptor, Descriptor>> socket_pair() { return pair_of(SOCK_STREAM); }
Result<std::pair<Descriptor, Descriptor>> packet_pair() { return pair_of(SOCK_SEQPACKET); }

void shut_down(const Descriptor& socket) { ::shutdown(socket.get(), SHUT_RDWR); }

ssize_t send_with(int socket, std::string_view bytes, std::span<const int> descriptors, int flags) {
  if (descriptors.empty()) return ::send(socket, bytes.data(), bytes.size(), flags);
  check(descriptors.size() <= wire::kDescriptorsMax, "few descriptors at once");
  iovec data{.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()};
  Control control;
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes.data();
  message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
  std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
  return ::sendmsg(socket, &message, flags);
}

ssize_t receive(int socket, std::span<char> bytes, int flags) {
  iovec data{.iov_base = bytes.data(), .iov_len = bytes.size()};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  return receive_message(socket, message, flags);
}

ssize_t receive_with(int socket, std::span<char> bytes, std::vector<Descriptor>& descriptors,
                     int flags) {
  iovec data{.iov_base = bytes.data(), .iov_len = bytes.size()};
  Control control;
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes.data();
  message.msg_controllen = control.bytes.size();
  const ssize_t got = receive_message(socket, message, flags);
  if (got < 0) return got;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(header) + (i * sizeof(int)), sizeof(int));
      descriptors.emplace_back(descriptor);
      do_not_linger(descriptor);
    }
  }
  return got;
}

}  // namespace trainyard::sys

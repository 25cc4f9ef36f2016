// Unix sockets: bytes, and with the first of them descriptors (SCM_RIGHTS).
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "sys/descriptor.h"

namespace trainyard::sys {

/// The number of descriptors that Linux passes with one message.
constexpr std::size_t kPassedMax = 253;

/// Two connected ends of a stream.
Result<std::pair<Descriptor, Descriptor>> socket_pair();
/// The same for a socket that keeps apart the pieces that were sent in one go (SOCK_SEQPACKET).
Result<std::pair<Descriptor, Descriptor>> packet_pair();

/// Nothing comes or goes any more, also for a thread that waits for that.
void shut_down(const Descriptor& socket);

/// Like send(2) with these flags; the descriptors go with the first byte, at most
/// wire::kDescriptorsMax. They stay open here.
ssize_t send_with(int socket, std::string_view bytes, std::span<const int> descriptors, int flags);

/// Like recv(2), but the bytes that the other end sent before it closed come first, also when it
/// left something unread: Linux reports that (ECONNRESET) before the packets that are still there.
ssize_t receive(int socket, std::span<char> bytes, int flags);

/// Like receive(). Descriptors that came are added to `descriptors`; they are closed on exec. Some
/// may be lost when this process has no room for them. A socket among them does not linger any
/// more: closing it waits for nobody, whatever its sender has set.
ssize_t receive_with(int socket, std::span<char> bytes, std::vector<Descriptor>& descriptors,
                     int flags);

}  // namespace trainyard::sys

#include "sys/packing.h"

#include <cerrno>

#include <sys/socket.h>
#include <sys/types.h>

namespace trainyard::sys {
namespace {

using Length = std::uint32_t;

}  // namespace

bool send_packed(int socket, std::string_view piece) {
  Packing head;
  head.add(static_cast<Length>(piece.size()));
  const std::string bytes = std::move(head).take() + std::string(piece);
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const ssize_t put = ::send(socket, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    rest.remove_prefix(static_cast<std::size_t>(put));
  }
  return true;
}

void PackedReader::read(int socket) { receive(socket, MSG_DONTWAIT); }
void PackedReader::wait_and_read(int socket) { receive(socket, 0); }

void PackedReader::receive(int socket, int flags) {
  std::array<char, 65536> bytes;  // NOLINT(*-member-init): written by recv, and large.
  while (!broken_) {
    const ssize_t got = ::recv(socket, bytes.data(), bytes.size(), flags);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
      broken_ = true;
      return;
    }
    bytes_.append(bytes.data(), static_cast<std::size_t>(got));
    if (bytes_.size() > piece_max_ + sizeof(Length)) broken_ = true;
    if (flags == 0 || got < static_cast<ssize_t>(bytes.size())) return;
  }
}

std::optional<std::string> PackedReader::next() {
  if (bytes_.size() < sizeof(Length)) return std::nullopt;
  const std::size_t size = Unpacking(bytes_).number<Length>();
  if (bytes_.size() - sizeof(Length) < size) return std::nullopt;
  std::string piece = bytes_.substr(sizeof(Length), size);
  bytes_.erase(0, sizeof(Length) + size);
  return piece;
}

}  // namespace trainyard::sys

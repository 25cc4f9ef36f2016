#include "link/frame_socket.h"

#include <array>
#include <cerrno>
#include <expected>
#include <utility>

#include <poll.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base/check.h"
#include "sys/passing.h"

namespace trainyard::link {
namespace {

constexpr std::size_t kReadAtOnce = std::size_t{64} << 10;
/// Nobody who lives leaves a socket full for so long.
constexpr int kWriteWaitMs = 30'000;

}  // namespace

void FrameSocket::shut_down() const { sys::shut_down(socket_); }

Result<void> FrameSocket::send(const wire::Frame& frame, ArenaPool* pool) {
  const auto bytes = wire::encode(frame, limits_);
  if (!bytes) return std::unexpected(bytes.error());
  send(*bytes, frame, pool);
  return {};
}

void FrameSocket::send(const std::string& bytes, const wire::Frame& frame, ArenaPool* pool) {
  std::vector<int> descriptors;
  if (!frame.shared.empty()) {
    check(pool != nullptr, "a pool for what is shared");
    descriptors = arenas_.descriptors_with(frame, *pool);
  }
  outgoing_.add(bytes, descriptors);
  write_some();
}

Result<void> FrameSocket::send_with_descriptor(const wire::Frame& frame, int descriptor) {
  const auto bytes = wire::encode(frame, limits_);
  if (!bytes) return std::unexpected(bytes.error());
  outgoing_.add(*bytes, {descriptor});
  write_some();
  return {};
}

bool FrameSocket::write_some() {
  outgoing_.send_some(socket_.get());
  return outgoing_.empty();
}

Result<void> FrameSocket::write_all() {
  while (!write_some()) {
    pollfd waiting{.fd = socket_.get(), .events = POLLOUT, .revents = 0};
    const int ready = ::poll(&waiting, 1, kWriteWaitMs);
    if (ready == 0) return std::unexpected(Error{"the other end does not read"});
    if (ready < 0 && errno != EINTR)
      return std::unexpected(sys::system_error("cannot send", errno));
  }
  return {};
}

Result<void> FrameSocket::read_some() {
  std::array<char, kReadAtOnce> bytes;  // NOLINT(*-member-init): only what was read is looked at.
  std::vector<sys::Descriptor> descriptors;
  const ssize_t count = sys::receive_with(socket_.get(), bytes, descriptors, MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return {};
  if (count <= 0) return std::unexpected(Error{"its connection has ended"});
  for (sys::Descriptor& descriptor : descriptors) {
    if (Result<void> taken = arenas_.take(std::move(descriptor)); !taken) return taken;
  }
  reader_.add({bytes.data(), static_cast<std::size_t>(count)});
  return {};
}

Result<std::optional<wire::Frame>> FrameSocket::next() { return reader_.next(); }

Result<wire::Frame> FrameSocket::wait_for_frame() {
  while (true) {
    auto frame = reader_.next();
    if (!frame) return std::unexpected(std::move(frame.error()));
    std::optional<wire::Frame>& whole = *frame;
    if (whole) return *std::move(whole);
    pollfd waiting{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&waiting, 1, -1) < 0) {
      if (errno == EINTR) continue;
      return std::unexpected(sys::system_error("cannot wait", errno));
    }
    if (Result<void> read = read_some(); !read) return std::unexpected(std::move(read.error()));
  }
}

}  // namespace trainyard::link

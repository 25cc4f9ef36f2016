#include "link/conversation.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <utility>

#include <sys/socket.h>
#include <sys/types.h>

#include <fmt/format.h>

#include "base/check.h"
#include "base/duration_text.h"
#include "link/control_socket.h"
#include "link/frame_server.h"
#include "sys/event_loop.h"
#include "sys/passing.h"
#include "wire/control.h"

namespace trainyard::link {
namespace {

constexpr std::size_t kReadBytes = std::size_t{16} << 10;
constexpr std::uint64_t kHelloSequence = 1;

}  // namespace

Conversation::Conversation(Options options)
    : options_(std::move(options)), reader_(options_.limits) {
  if (options_.within) deadline_ = sys::EventLoop::now() + *options_.within;
}

Result<void> Conversation::connect(const std::string& path) {
  const auto address = socket_address(path);
  if (!address) return std::unexpected(address.error());
  socket_ = sys::Descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket_.is_open()) return failed("cannot make a socket", errno);
  while (true) {
    if (!give_time()) return too_late();
    if (::connect(socket_.get(), generic(*address), sizeof *address) == 0) return {};
    if (errno == EAGAIN) return too_late();
    if (errno != EINTR) return cannot_connect(path, errno);
  }
}

std::optional<std::int64_t> Conversation::other_process() const {
  const auto peer = peer_of(socket_.get());
  return peer ? std::optional(peer->process) : std::nullopt;
}

Result<void> Conversation::greet(const wire::Hello& hello) {
  const auto greeted = exchange({.kind = wire::FrameKind::Hello,
                                 .sequence = kHelloSequence,
                                 .fields = wire::to_fields(hello)},
                                wire::FrameKind::Welcome);
  if (!greeted) return std::unexpected(greeted.error());
  const auto welcome = wire::read_welcome(greeted->fields);
  if (!welcome) return not_understood(welcome.error().message);
  if (!welcome->ok) return refused(welcome->error);
  return {};
}

Result<void> Conversation::tell(const wire::Frame& frame) {
  const auto bytes = wire::encode(frame, options_.limits);
  if (!bytes) return std::unexpected(bytes.error());
  if (frame.shared.empty()) return send(*bytes, {});
  check(pool_ != nullptr, "a pool for what is shared");
  return send(*bytes, arenas_.descriptors_with(frame, *pool_));
}

Result<std::vector<std::span<const std::byte>>> Conversation::shared(const wire::Frame& frame) {
  return arenas_.open(frame);
}

Result<void> Conversation::release(const wire::Frame& frame) {
  for (const wire::SharedBuffer& buffer : frame.shared) {
    Result<void> sent = tell({.kind = wire::FrameKind::Release, .topic = buffer.arena});
    if (!sent) return sent;
  }
  return {};
}

Result<void> Conversation::wait_for_release() {
  const Result<wire::Frame> frame = receive();
  if (!frame) return std::unexpected(frame.error());
  if (frame->kind == wire::FrameKind::Failure) return refused(wire::read_failure(frame->fields));
  if (frame->kind != wire::FrameKind::Release) return not_understood("an answer to something else");
  return released(*frame);
}

Result<void> Conversation::released(const wire::Frame& frame) {
  if (pool_ == nullptr) return not_understood("a release of what was not sent");
  const Result<void> known = arenas_.released(frame.topic, *pool_);
  if (!known) return not_understood(known.error().message);
  return {};
}

Result<wire::Frame> Conversation::hear(wire::FrameKind expected) {
  auto frame = receive();
  while (frame && frame->kind == wire::FrameKind::Release) {
    if (Result<void> known = released(*frame); !known) {
      return std::unexpected(std::move(known.error()));
    }
    frame = receive();
  }
  if (!frame) return frame;
  if (frame->kind == wire::FrameKind::Failure) return refused(wire::read_failure(frame->fields));
  if (frame->kind != expected) return not_understood("an answer to something else");
  return frame;
}

Result<wire::Frame> Conversation::exchange(const wire::Frame& frame, wire::FrameKind expected) {
  if (auto sent = tell(frame); !sent) return std::unexpected(std::move(sent.error()));
  auto answer = hear(expected);
  if (answer && answer->sequence != frame.sequence) {
    return not_understood("an answer to something else");
  }
  return answer;
}

Result<void> Conversation::send(std::string_view bytes, std::vector<int> descriptors) {
  while (!bytes.empty()) {
    if (!give_time()) return too_late();
    const ssize_t count = sys::send_with(socket_.get(), bytes, descriptors, MSG_NOSIGNAL);
    if (count >= 0) {
      descriptors.clear();
      bytes.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno == EAGAIN) {
      return too_late();
    } else if (errno == EPIPE || errno == ECONNRESET) {
      // It has closed the connection, and said why before: that is there to be read.
      has_ended_ = true;
      return {};
    } else if (errno != EINTR) {
      return failed("cannot send", errno);
    }
  }
  return {};
}

Result<wire::Frame> Conversation::receive() {
  while (true) {
    auto next = reader_.next();
    if (!next) return not_understood(next.error().message);
    std::optional<wire::Frame> frame = std::move(*next);
    if (frame) return std::move(*frame);
    if (!give_time()) return too_late();
    std::array<char, kReadBytes> bytes;  // NOLINT(*-member-init): only what was read is looked at.
    std::vector<sys::Descriptor> descriptors;
    const ssize_t count = sys::receive_with(socket_.get(), bytes, descriptors, 0);
    for (sys::Descriptor& descriptor : descriptors) {
      if (!arenas_.take(std::move(descriptor))) return not_understood("too many descriptors");
    }
    if (count > 0) {
      reader_.add({bytes.data(), static_cast<std::size_t>(count)});
    } else if (count == 0 || errno == ECONNRESET) {
      has_ended_ = true;
      return std::unexpected(Error{options_.with + " ended before it answered"});
    } else if (errno == EAGAIN) {
      return too_late();
    } else if (errno != EINTR) {
      return failed("cannot read the answer", errno);
    }
  }
}

/// Lets the next call on the socket block until the deadline; false when that has passed.
bool Conversation::give_time() const {
  if (!deadline_) return true;
  const Duration left = *deadline_ - sys::EventLoop::now();
  if (left <= Duration{0}) return false;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
  const auto rest = std::chrono::duration_cast<std::chrono::microseconds>(left - seconds);
  const timeval time{.tv_sec = seconds.count(), .tv_usec = rest.count()};
  return ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time) == 0 &&
         ::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time) == 0;
}

std::unexpected<Error> Conversation::not_understood(const std::string& what) const {
  return std::unexpected(
      Error{fmt::format("{} does not speak our protocol: {}", options_.with, what)});
}

std::unexpected<Error> Conversation::refused(const std::string& why) const {
  return std::unexpected(Error{fmt::format("{} refused: {}", options_.with, why)});
}

std::unexpected<Error> Conversation::cannot_connect(const std::string& path,
                                                    int error_number) const {
  if (error_number == ENOENT || error_number == ECONNREFUSED) {
    return std::unexpected(Error{options_.with + " is not running"});
  }
  if (error_number == EACCES || error_number == EPERM) {
    return std::unexpected(Error{options_.with + " belongs to another user"});
  }
  return failed(fmt::format("cannot connect to '{}'", path), error_number);
}

std::unexpected<Error> Conversation::too_late() const {
  return std::unexpected(Error{fmt::format("{} did not answer within {}", options_.with,
                                           to_text(options_.within.value_or(Duration{0})))});
}

std::unexpected<Error> Conversation::failed(std::string_view what, int error_number) const {
  return std::unexpected(sys::system_error(what, error_number).in(options_.with));
}

Result<void> greet(FrameSocket& socket, const wire::Hello& hello, const std::string& with) {
  Result<void> said =
      socket.send({.kind = wire::FrameKind::Hello, .fields = wire::to_fields(hello)});
  if (!said) return said;
  const auto frame = socket.wait_for_frame();
  if (!frame) return std::unexpected(Error{with + ": " + frame.error().message});
  if (frame->kind == wire::FrameKind::Failure) {
    return std::unexpected(Error{"refused: " + wire::read_failure(frame->fields)});
  }
  const auto welcome = wire::read_welcome(frame->fields);
  if (!welcome) return std::unexpected(welcome.error());
  if (!welcome->ok) return std::unexpected(Error{"refused: " + welcome->error});
  return {};
}

}  // namespace trainyard::link

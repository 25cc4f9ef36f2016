#include "io/control_client.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <sys/socket.h>
#include <sys/types.h>

#include <fmt/format.h>

#include "base/duration_text.h"
#include "base/result.h"
#include "base/time.h"
#include "io/control_socket.h"
#include "io/descriptor.h"
#include "io/event_loop.h"
#include "wire/control.h"
#include "wire/frame.h"
#include "wire/hello.h"

namespace trainyard::io {
namespace {

constexpr std::size_t kReadBytes = std::size_t{16} << 10;

/// One connection with one deadline for all that is done on it.
class Conversation {
 public:
  explicit Conversation(const AskOptions& options)
      : options_(options), deadline_(EventLoop::now() + options.within) {}

  Result<void> connect(const std::string& path) {
    const auto address = socket_address(path);
    if (!address) return std::unexpected(address.error());
    socket_ = Descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!socket_.is_open()) return failed("cannot make a socket", errno);
    while (true) {
      if (!give_time()) return too_late();
      if (::connect(socket_.get(), generic(*address), sizeof *address) == 0) return {};
      if (errno == EAGAIN) return too_late();
      if (errno != EINTR) return cannot_connect(path, errno);
    }
  }

  /// Sends a frame and waits for the one that answers it.
  Result<wire::Frame> exchange(const wire::Frame& frame, wire::FrameKind expected) {
    const auto bytes = wire::encode(frame, wire::kControlLimits);
    if (!bytes) return std::unexpected(bytes.error());
    if (auto sent = send(*bytes); !sent) return std::unexpected(std::move(sent.error()));
    auto answer = receive();
    if (!answer) return answer;
    if (answer->kind == wire::FrameKind::Failure) {
      return refused(wire::read_failure(answer->fields));
    }
    if (answer->kind != expected || answer->sequence != frame.sequence) {
      return not_understood("an answer to something else");
    }
    return answer;
  }

  [[nodiscard]] std::unexpected<Error> not_understood(const std::string& what) const {
    return std::unexpected(
        Error{fmt::format("the run in '{}' does not speak our protocol: {}", options_.run, what)});
  }

  [[nodiscard]] std::unexpected<Error> refused(const std::string& why) const {
    return std::unexpected(Error{fmt::format("the run in '{}' refused: {}", options_.run, why)});
  }

 private:
  Result<void> send(std::string_view bytes) {
    while (!bytes.empty()) {
      if (!give_time()) return too_late();
      const ssize_t count = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count >= 0) {
        bytes.remove_prefix(static_cast<std::size_t>(count));
      } else if (errno == EAGAIN) {
        return too_late();
      } else if (errno == EPIPE || errno == ECONNRESET) {
        // It has closed the connection, and said why before: that is there to be read.
        return {};
      } else if (errno != EINTR) {
        return failed("cannot send", errno);
      }
    }
    return {};
  }

  Result<wire::Frame> receive() {
    while (true) {
      auto next = reader_.next();
      if (!next) return not_understood(next.error().message);
      std::optional<wire::Frame> frame = std::move(*next);
      if (frame) return std::move(*frame);
      if (!give_time()) return too_late();
      std::array<char, kReadBytes>
          bytes;  // NOLINT(*-member-init): only what was read is looked at.
      const ssize_t count = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
      if (count > 0) {
        reader_.add({bytes.data(), static_cast<std::size_t>(count)});
      } else if (count == 0 || errno == ECONNRESET) {
        return std::unexpected(
            Error{fmt::format("the run in '{}' ended before it answered", options_.run)});
      } else if (errno == EAGAIN) {
        return too_late();
      } else if (errno != EINTR) {
        return failed("cannot read the answer", errno);
      }
    }
  }

  /// Lets the next call on the socket block until the deadline; false when that has passed.
  [[nodiscard]] bool give_time() const {
    const Duration left = deadline_ - EventLoop::now();
    if (left <= Duration{0}) return false;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
    const auto rest = std::chrono::duration_cast<std::chrono::microseconds>(left - seconds);
    // NOLINTBEGIN(misc-include-cleaner): sys/socket.h has all of this, through headers of its own.
    const timeval time{.tv_sec = seconds.count(), .tv_usec = rest.count()};
    return ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time) == 0 &&
           ::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time) == 0;
    // NOLINTEND(misc-include-cleaner)
  }

  [[nodiscard]] std::unexpected<Error> cannot_connect(const std::string& path,
                                                      int error_number) const {
    if (error_number == ENOENT || error_number == ECONNREFUSED) {
      return std::unexpected(Error{fmt::format("the run in '{}' is not running", options_.run)});
    }
    if (error_number == EACCES || error_number == EPERM) {
      return std::unexpected(
          Error{fmt::format("the run in '{}' belongs to another user", options_.run)});
    }
    return failed(fmt::format("cannot connect to '{}'", path), error_number);
  }

  [[nodiscard]] std::unexpected<Error> too_late() const {
    return std::unexpected(Error{fmt::format("the run in '{}' did not answer within {}",
                                             options_.run, to_text(options_.within))});
  }

  [[nodiscard]] std::unexpected<Error> failed(std::string_view what, int error_number) const {
    return std::unexpected(
        system_error(what, error_number).in(fmt::format("the run in '{}'", options_.run)));
  }

  const AskOptions& options_;
  Duration deadline_;
  Descriptor socket_;
  wire::FrameReader reader_{wire::kControlLimits};
};

}  // namespace

Result<wire::ControlReply> ask(const std::string& socket_path, const wire::ControlRequest& request,
                               const AskOptions& options) {
  constexpr std::uint64_t kHelloSequence = 1;
  constexpr std::uint64_t kRequestSequence = 2;
  Conversation conversation(options);
  if (auto connected = conversation.connect(socket_path); !connected) {
    return std::unexpected(std::move(connected.error()));
  }
  const wire::Hello hello{.role = wire::Role::Control,
                          .version = wire::kProtocolVersion,
                          .program = options.program,
                          .token = {}};
  const auto greeted = conversation.exchange({.kind = wire::FrameKind::Hello,
                                              .sequence = kHelloSequence,
                                              .fields = wire::to_fields(hello)},
                                             wire::FrameKind::Welcome);
  if (!greeted) return std::unexpected(greeted.error());
  const auto welcome = wire::read_welcome(greeted->fields);
  if (!welcome) return conversation.not_understood(welcome.error().message);
  if (!welcome->ok) return conversation.refused(welcome->error);
  const auto answered = conversation.exchange({.kind = wire::FrameKind::Request,
                                               .sequence = kRequestSequence,
                                               .fields = wire::to_fields(request)},
                                              wire::FrameKind::Reply);
  if (!answered) return std::unexpected(answered.error());
  auto reply = wire::read_reply(answered->fields);
  if (!reply) return conversation.not_understood(reply.error().message);
  return reply;
}

}  // namespace trainyard::io

// One connection to a yard at work, from the side of who connects: hello, then frames.
//
// Blocks, with one deadline for all that is done on it, or none. For programs that do one thing and
// end; any thread. The other end is link/frame_server.h.
#pragma once

#include <cstddef>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "link/arena.h"
#include "link/frame_socket.h"
#include "sys/descriptor.h"
#include "wire/frame.h"
#include "wire/hello.h"

namespace trainyard::link {

class Conversation {
 public:
  struct Options {
    std::string with;  ///< The other end, in errors: "the run in 'runs/x'".
    /// From now to the last byte that is wanted; nothing: as long as it takes.
    std::optional<Duration> within;
    wire::FrameLimits limits;
  };

  explicit Conversation(Options options);

  Result<void> connect(const std::string& path);
  /// Says who we are. An error says why we are not let in.
  Result<void> greet(const wire::Hello& hello);

  /// The arenas of what we send with shared buffers. Must outlive this.
  void use(ArenaPool& pool) { pool_ = &pool; }

  /// Also Ok where the other end has closed the connection: has_ended() is true then, and hear()
  /// returns why.
  Result<void> tell(const wire::Frame& frame);
  /// Waits for a frame of that kind; any other is an error, and so is the end of the connection.
  /// Notes the arenas that are released meanwhile.
  Result<wire::Frame> hear(wire::FrameKind expected);
  /// Sends a frame and waits for the one that answers it.
  Result<wire::Frame> exchange(const wire::Frame& frame, wire::FrameKind expected);

  /// The shared buffers of a received frame, valid until release().
  Result<std::vector<std::span<const std::byte>>> shared(const wire::Frame& frame);
  Result<void> release(const wire::Frame& frame);
  /// Waits until the other end has released an arena. Any other frame is an error.
  Result<void> wait_for_release();

  /// The PID of the process at the other end of the connection; nothing: it is not known.
  [[nodiscard]] std::optional<std::int64_t> other_process() const;

  /// For who speaks on after the hello in another way. Nothing is done here any more.
  sys::Descriptor take_socket() { return std::move(socket_); }

  /// The other end has closed the connection, or is gone.
  [[nodiscard]] bool has_ended() const { return has_ended_; }

  [[nodiscard]] std::unexpected<Error> not_understood(const std::string& what) const;

 private:
  Result<void> send(std::string_view bytes, std::vector<int> descriptors);
  Result<wire::Frame> receive();
  Result<void> released(const wire::Frame& frame);
  [[nodiscard]] bool give_time() const;
  [[nodiscard]] std::unexpected<Error> refused(const std::string& why) const;
  [[nodiscard]] std::unexpected<Error> cannot_connect(const std::string& path,
                                                      int error_number) const;
  [[nodiscard]] std::unexpected<Error> too_late() const;
  [[nodiscard]] std::unexpected<Error> failed(std::string_view what, int error_number) const;

  Options options_;
  std::optional<Duration> deadline_;
  sys::Descriptor socket_;
  wire::FrameReader reader_;
  ArenaExchange arenas_;
  ArenaPool* pool_ = nullptr;
  bool has_ended_ = false;
};

/// Says who we are on a connection whose other end may speak at once, and waits for the answer:
/// what comes together with its welcome stays in the socket's reader. An error says why we are not
/// let in; `with` is what it calls the other end. Any thread.
Result<void> greet(FrameSocket& socket, const wire::Hello& hello, const std::string& with);

}  // namespace trainyard::link

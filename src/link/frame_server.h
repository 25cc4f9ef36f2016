// The yard's ear: a Unix socket on which others talk to a yard at work, in frames.
//
// It knows connections: who may connect, the hello, the limits, and that a fault of a connection
// ends that connection alone (docs/protocol.md). The doors, one for each role, handle the frames:
// link/control_server.h is behind that of the user's commands.
//
// Belongs to the thread of its event loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "link/arena.h"
#include "sys/descriptor.h"
#include "sys/event_loop.h"
#include "wire/frame.h"
#include "wire/hello.h"

namespace trainyard::link {

/// Who is at the other end of a socket, as the kernel says it.
struct Peer {
  std::int64_t process = 0;
  std::uint32_t user = 0;
};

/// Reads SO_PEERCRED.
Result<Peer> peer_of(int socket);

/// One connection of a server, from its beginning to its end. No number comes twice.
using ConnectionId = std::uint64_t;

/// The rules and callbacks for connections of one role.
struct Door {
  wire::FrameKind takes = wire::FrameKind::Request;  ///< Every other kind is a fault.
  wire::FrameLimits limits = wire::kControlLimits;   ///< After the hello, both ways.
  bool may_be_silent = false;                        ///< See let_be_silent().
  /// Whether to let in who has said this hello. An error is sent, and closes the connection.
  std::move_only_function<Result<void>(ConnectionId, const wire::Hello&)> admit;
  /// Once for each that was let in, behind its Welcome. May be missing.
  std::move_only_function<void(ConnectionId)> on_welcome = nullptr;
  std::move_only_function<void(ConnectionId, wire::Frame)> on_frame;
  /// Once for each that was let in, except when the server ends.
  std::move_only_function<void(ConnectionId)> on_gone;
};

struct FrameServerOptions {
  std::string program;  ///< "trainyard 0.1.0": said to who connects.
  std::vector<std::string>
      parents;  ///< The first in which it can be made; see link/control_socket.h.
  /// Called with a directory for the socket before it is made. May be missing.
  std::function<void(const std::string& directory)> before_made = nullptr;
  /// Called with each fault of a connection, for the log.
  std::function<void(std::string_view what)> on_trouble;
  std::function<Result<Peer>(int socket)> peer = peer_of;

  std::size_t strangers_max = 64;                         ///< Who have not said hello yet.
  std::size_t unread_bytes_max = std::size_t{256} << 10;  ///< Of answers, for one connection.
  Duration hello_within{5'000};
  Duration silence_max{60'000};
  Duration full_pause{1'000};  ///< Nobody is let in for so long after descriptors ran out.
  /// In this time at most `troubles_max` troubles are reported; the number of the others comes with
  /// the next one.
  Duration trouble_window{10'000};
  int troubles_max = 5;
};

class FrameServer {
 public:
  /// Makes a directory that only we can enter, listens in it, and serves from run_once() of `loop`,
  /// which must outlive this. Callbacks may destroy the server. An error says why no directory is
  /// suitable.
  static Result<std::unique_ptr<FrameServer>> listen(sys::EventLoop& loop,
                                                     FrameServerOptions options);

  FrameServer(FrameServer&&) = delete;
  FrameServer& operator=(FrameServer&&) = delete;
  /// Closes all connections, removes socket and directory.
  ~FrameServer();

  /// A connection with a role that has no door gets an error and is closed.
  void open_door(wire::Role role, Door door);
  /// Ends all who came in by it.
  void close_door(wire::Role role);

  /// Has no effect on a closed connection. The frame must be within the limits of its door. A
  /// connection with more than `unread_bytes_max` unread bytes is closed.
  void send(ConnectionId connection, const wire::Frame& frame);
  /// The arenas of what is sent with shared buffers. Must outlive this.
  void use(ArenaPool& pool);
  /// Where the shared buffers of a frame lie, while its door's on_frame() runs.
  std::vector<std::span<const std::byte>> shared(ConnectionId connection, const wire::Frame& frame);
  /// Its process, as the kernel says it; 0 when it has gone.
  [[nodiscard]] std::int64_t process_of(ConnectionId connection) const;
  /// Whoever takes it speaks to it from now on, and the server forgets it without a word. An error:
  /// it has gone, or has said more than its hello.
  Result<sys::Descriptor> hand_over(ConnectionId connection);
  /// Says why, and closes.
  void end(ConnectionId connection, const std::string& why);
  /// One that may not be silent is cut off after `silence_max` without a frame.
  void let_be_silent(ConnectionId connection, bool may_be);

  /// Reads all unread frames, in order for each connection, so that the messages of a process come
  /// before its end, which is known another way. Costs a system call for each connection.
  void catch_up();
  /// Takes all that has come from this connection, up to its end if it has ended.
  void catch_up(ConnectionId number);

  /// Where to connect to. At most 107 bytes, absolute.
  [[nodiscard]] const std::string& path() const;
  [[nodiscard]] std::size_t connections() const;

 private:
  struct State;
  explicit FrameServer(std::shared_ptr<State> state);
  /// Shared with the callbacks in the loop, for as long as one of them runs: they hold it weakly,
  /// so the server's end is the state's end.
  std::shared_ptr<State> state_;
};

}  // namespace trainyard::link

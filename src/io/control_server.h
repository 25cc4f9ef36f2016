// The yard's ear: a Unix socket on which `trainyard kill` and the like ask a yard at work.
//
// It knows the protocol (docs/protocol.md), who may ask, and its limits; what a request means is
// the callback's business. Whatever a connection does wrong is the end of that connection alone.
//
// Belongs to the thread of its event loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "io/event_loop.h"
#include "wire/control.h"

namespace trainyard::io {

/// Answers one request, once, now or in a later turn. When who asked has gone, or the server has,
/// the answer is dropped. One that is destroyed without an answer says that there was none.
class Reply {
 public:
  using Send = std::move_only_function<void(const wire::ControlReply&)>;

  explicit Reply(Send send) : send_(std::move(send)) {}
  Reply(Reply&& other) noexcept : send_(std::exchange(other.send_, nullptr)) {}
  Reply& operator=(Reply&& other) noexcept;
  ~Reply();

  void operator()(const wire::ControlReply& reply);

 private:
  Send send_;
};

/// Who is at the other end of a socket, as the kernel says it.
struct Peer {
  std::int64_t process = 0;
  std::uint32_t user = 0;
};

/// Reads SO_PEERCRED.
Result<Peer> peer_of(int socket);

struct ControlServerOptions {
  std::string program;  ///< "trainyard 0.1.0": said to who connects.
  std::vector<std::string>
      parents;  ///< The first in which it can be made; see io/control_socket.h.
  std::function<Result<Peer>(int socket)> peer = peer_of;

  std::size_t connections_max = 64;                       ///< One more is told so and closed.
  std::size_t unanswered_max = 64;                        ///< Requests of one connection.
  std::size_t unread_bytes_max = std::size_t{256} << 10;  ///< Of answers, for one connection.
  Duration hello_within{5'000};
  Duration silence_max{60'000};  ///< After a hello, while no answer is due.
  Duration full_pause{1'000};    ///< Nobody is let in for so long after descriptors ran out.
  /// In so much time at most so many troubles are told; how many more there were comes with the
  /// next one.
  Duration trouble_window{10'000};
  int troubles_max = 5;
};

struct ControlCallbacks {
  std::move_only_function<void(wire::ControlRequest, Reply)> on_request;
  /// What connections did wrong, for the log.
  std::move_only_function<void(std::string_view what)> on_trouble;
};

class ControlServer {
 public:
  /// Makes a directory that only we can enter, listens in it, and serves from run_once() of `loop`,
  /// which must outlive this. The callbacks may destroy the server. An error says why no directory
  /// would do.
  static Result<ControlServer> listen(EventLoop& loop, ControlServerOptions options,
                                      ControlCallbacks callbacks);

  ControlServer(ControlServer&&) noexcept;
  ControlServer& operator=(ControlServer&&) noexcept;
  /// Closes all connections, removes socket and directory.
  ~ControlServer();

  /// Where to connect to. At most 107 bytes, absolute.
  [[nodiscard]] const std::string& path() const;
  [[nodiscard]] std::size_t connections() const;

 private:
  struct State;
  explicit ControlServer(std::shared_ptr<State> state);
  /// Shared with the callbacks in the loop and the replies that are due, for as long as one of them
  /// runs: they hold it weakly, so the server's end is the state's end.
  std::shared_ptr<State> state_;
};

}  // namespace trainyard::io

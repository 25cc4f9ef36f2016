// Answers people's commands (`trainyard kill` and the like) to a yard at work.
//
// It stands behind the door for `control` of a frame server; what a request means is the callback's
// business.
//
// Belongs to the thread of the server's event loop.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

#include "link/frame_server.h"
#include "wire/control.h"

namespace trainyard::link {

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

struct ControlLimits {
  std::size_t connections_max = 64;  ///< One more is refused and closed.
  std::size_t unanswered_max = 512;  ///< Requests of one connection.
};

class ControlServer {
 public:
  using OnRequest = std::move_only_function<void(wire::ControlRequest, Reply)>;

  /// Opens the door of `server`, which must outlive this. `on_request` may destroy both.
  ControlServer(FrameServer& server, ControlLimits limits, OnRequest on_request);
  ControlServer(ControlServer&&) = delete;
  ControlServer& operator=(ControlServer&&) = delete;
  /// Closes the door.
  ~ControlServer();

 private:
  struct State;
  /// Shared with what the door calls and with the replies that are due, which hold it weakly.
  std::shared_ptr<State> state_;
};

}  // namespace trainyard::link

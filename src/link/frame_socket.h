// One end of a connection on which frames and their shared buffers go both ways: what has come is
// taken, what is sent goes as far as it can, and nothing waits unless it is asked to.
//
// Knows no roles and no hello (link/frame_server.h, link/conversation.h do). One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "link/arena.h"
#include "sys/descriptor.h"
#include "sys/outgoing.h"
#include "wire/frame.h"

namespace trainyard::link {

class FrameSocket {
 public:
  FrameSocket(sys::Descriptor socket, const wire::FrameLimits& limits)
      : socket_(std::move(socket)), limits_(limits), reader_(limits) {}

  [[nodiscard]] int descriptor() const { return socket_.get(); }
  /// Nothing more goes either way, here and at the other end; the descriptor stays.
  void shut_down() const;

  /// An error: the frame is over a limit. `pool` has the arenas that it names.
  Result<void> send(const wire::Frame& frame, ArenaPool* pool = nullptr);
  /// The same of a frame that was encoded before, for several.
  void send(const std::string& bytes, const wire::Frame& frame, ArenaPool* pool);
  /// With a descriptor that is no arena's; the other end takes it with take_descriptor().
  Result<void> send_with_descriptor(const wire::Frame& frame, int descriptor);
  /// As much as goes now; true when nothing is left.
  bool write_some();
  [[nodiscard]] std::size_t unsent() const { return outgoing_.size(); }
  /// Waits until all has gone. An error: it has not within a time that a living reader needs.
  Result<void> write_all();

  /// Takes what has come. An error: the connection has ended.
  Result<void> read_some();
  /// The next whole frame that has come. An error: it does not speak the protocol.
  Result<std::optional<wire::Frame>> next();
  /// Waits for one, as long as it takes.
  Result<wire::Frame> wait_for_frame();

  Result<sys::Descriptor> take_descriptor() { return arenas_.take_unnamed(); }
  ArenaExchange& arenas() { return arenas_; }

 private:
  sys::Descriptor socket_;
  wire::FrameLimits limits_;
  wire::FrameReader reader_;
  sys::Outgoing outgoing_;
  ArenaExchange arenas_;
};

}  // namespace trainyard::link

// The state of one connection of a frame server. Private to link/frame_server.cc.
#pragma once

#include <cstdint>
#include <optional>

#include "base/time.h"
#include "link/arena_exchange.h"
#include "sys/descriptor.h"
#include "sys/outgoing.h"
#include "wire/control.h"
#include "wire/frame.h"
#include "wire/hello.h"

namespace trainyard::link {

struct Connection {
  sys::Descriptor socket;
  std::int64_t process = 0;
  std::optional<Duration> deadline;  ///< It ends then, unless it says something before.
  /// Before its hello, a connection may send only as much as the role with the smallest limits.
  wire::FrameReader reader{wire::kControlLimits};
  wire::FrameLimits limits = wire::kControlLimits;
  std::optional<wire::Role> role;  ///< Nothing before its hello.
  bool may_be_silent = false;
  sys::Outgoing unread;  ///< Bytes that the other end has not read yet.
  ArenaExchange arenas;
};

}  // namespace trainyard::link

// Hears on an event loop that a stop token was stopped, whichever thread does it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>

#include "sys/event_loop.h"

namespace trainyard::sys {

/// Belongs to the thread of its loop, which must outlive it.
class StopWatch {
 public:
  /// Runs `stopped` once, on the loop; also when it has been stopped before. Opens no descriptor,
  /// so that it cannot fail.
  StopWatch(EventLoop& loop, const std::stop_token& stop, EventLoop::Callback stopped);
  StopWatch(StopWatch&&) = delete;
  StopWatch& operator=(StopWatch&&) = delete;

 private:
  std::shared_ptr<EventLoop::Callback> stopped_;
  /// Ends first, and waits for the callback where another thread runs it.
  std::optional<std::stop_callback<std::function<void()>>> callback_;
};

}  // namespace trainyard::sys

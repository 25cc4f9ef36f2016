// Hears on an event loop that a stop token was stopped, whichever thread does it.
#pragma once

#include <functional>
#include <optional>
#include <stop_token>

#include "sys/descriptor.h"
#include "sys/event_loop.h"

namespace trainyard::sys {

/// Belongs to the thread of its loop, which must outlive it.
class StopWatch {
 public:
  /// Runs `stopped` once, on the loop; also when it has been stopped before.
  StopWatch(EventLoop& loop, const std::stop_token& stop, EventLoop::Callback stopped);
  StopWatch(StopWatch&&) = delete;
  StopWatch& operator=(StopWatch&&) = delete;
  ~StopWatch();

 private:
  EventLoop& loop_;
  Descriptor wake_;
  EventLoop::Callback stopped_;
  std::optional<std::stop_callback<std::function<void()>>> callback_;
};

}  // namespace trainyard::sys

// What another thread has for an event loop: a wake, and the stop of a stop token.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>

#include "base/result.h"
#include "sys/descriptor.h"
#include "sys/event_loop.h"

namespace trainyard::sys {

/// Wakes an event loop from another thread: the loop watches its descriptor. Any thread may wake;
/// one drains.
class Waker {
 public:
  /// An error where no descriptor is left.
  static Result<Waker> make();

  /// Its descriptor can be read from now on. Again: no effect.
  void wake() const;
  /// Makes it unreadable, until the next wake.
  void drain() const;
  [[nodiscard]] int descriptor() const { return event_.get(); }

 private:
  explicit Waker(Descriptor event) : event_(std::move(event)) {}

  Descriptor event_;
};

/// Hears on an event loop that a stop token was stopped, whichever thread does it.
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

// Waiting for things to happen on one thread: timers, descriptors, signals. The only place where
// Boost.Asio shows; its headers stay in event_loop.cc and the .cc files of io/.
//
// Not a thread pool, and not thread-safe: everything runs on the thread that calls run_once().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace trainyard::io {

class EventLoop {
 public:
  using Callback = std::move_only_function<void()>;
  using SignalCallback = std::move_only_function<void(int signal)>;

  EventLoop();
  ~EventLoop();
  EventLoop(EventLoop&&) = delete;
  EventLoop& operator=(EventLoop&&) = delete;

  /// Waits until at least one callback is ready, or `timeout` has passed, and runs all that are
  /// ready. Costs one wake-up of the thread, however many callbacks it runs.
  void run_once(std::optional<Duration> timeout);

  /// Runs `callback` each time `descriptor` can be read (or has hung up), until unwatch(). The
  /// descriptor stays the caller's. Level-triggered: what is not read is told again.
  void watch_readable(int descriptor, Callback callback);
  /// Runs `callback` once, when `descriptor` can be written.
  void when_writable(int descriptor, Callback callback);
  void unwatch(int descriptor);

  /// Names a timer of this loop; no two have the same.
  using TimerId = std::uint64_t;
  /// Runs `callback` once, when `delay` has passed.
  TimerId after(Duration delay, Callback callback);
  /// The callback of this timer will not run any more. One that has run already is no error.
  void cancel(TimerId timer);

  /// Takes these signals of the process over until the loop ends. One call a loop. Changes
  /// process-wide state: for programs, not for libraries.
  void watch_signals(const std::vector<int>& signals, SignalCallback callback);

  /// Monotonic, since an arbitrary moment.
  [[nodiscard]] static Duration now();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trainyard::io

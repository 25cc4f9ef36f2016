// Waiting for things to happen on one thread: timers, descriptors, signals. The only place where
// Boost.Asio shows; its headers stay in .cc files.
//
// Not a thread pool, and not thread-safe but for post(): everything runs on the thread that calls
// run_once().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <vector>

#include "base/time.h"

namespace trainyard::sys {

/// The machine has no descriptors left for a loop. An exception, as loops are members of what
/// cannot exist without one. main() of the program reports it; the library makes a Result of it.
class EventLoopError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class EventLoop {
 public:
  using Callback = std::move_only_function<void()>;
  using SignalCallback = std::move_only_function<void(int signal)>;

  /// Throws an EventLoopError.
  EventLoop();
  ~EventLoop();
  EventLoop(EventLoop&&) = delete;
  EventLoop& operator=(EventLoop&&) = delete;

  /// Waits until at least one callback is ready, or `timeout` has passed, and runs all that are
  /// ready, each at most once for a descriptor: one that floods us starves nobody. Blocks at most
  /// once, so it costs one wake-up of the thread, however many callbacks it runs.
  void run_once(std::optional<Duration> timeout);

  /// Runs `callback` each time `descriptor` can be read (or has hung up), until unwatch(). The
  /// descriptor stays the caller's, and is made non-blocking. Level-triggered: unread data is
  /// reported again in the next run_once(). Must be something that can be waited for: not a plain
  /// file. Throws an EventLoopError if the kernel refuses to watch it.
  void watch_readable(int descriptor, Callback callback);
  /// Runs `callback` once, when `descriptor` can be written.
  void when_writable(int descriptor, Callback callback);
  /// Call it before the descriptor is closed. Allowed in a callback, its own included.
  void unwatch(int descriptor);

  /// Names a timer of this loop; no two have the same.
  using TimerId = std::uint64_t;
  /// Runs `callback` once, when `delay` has passed.
  TimerId after(Duration delay, Callback callback);
  /// The callback of this timer will not run any more. One that has run already is no error.
  void cancel(TimerId timer);

  /// Runs `callback` once, in the next run_once(), which then does not block. Any thread: one that
  /// waits is woken.
  void post(Callback callback);

  /// Runs `callback` once, at the start of the next run_once(), which goes on to wait as ever: for
  /// what was gathered during a turn and is sent in one piece at its end.
  void before_waiting(Callback callback);

  /// Takes these signals of the process over until the loop ends. One call a loop. Changes
  /// process-wide state: for programs, not for libraries.
  void watch_signals(const std::vector<int>& signals, SignalCallback callback);
  /// Lets go of some of them: they do again what they do by default.
  void forget_signals(const std::vector<int>& signals);

  /// Monotonic, since an arbitrary moment.
  [[nodiscard]] static Duration now();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Waits so long, of a program that has nothing else to do.
void let_pass(Duration time);

}  // namespace trainyard::sys

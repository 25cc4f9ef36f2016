#include "sys/event_loop.h"

#include <algorithm>
#include <chrono>
#include <unordered_map>
#include <utility>

#include <poll.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/system/detail/error_code.hpp>
#include <boost/system/system_error.hpp>

#include "base/check.h"
#include "sys/descriptor.h"

namespace trainyard::sys {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

using Clock = std::chrono::steady_clock;

/// Time that a wait without a timeout sleeps before it checks whether anything is to be done.
constexpr Duration kForever = std::chrono::hours(24);
/// The most that a wait may end late. The ends of successive waits are mostly one instant that was
/// rounded differently.
constexpr Duration kLate{1};

bool is_ready(int descriptor, short events) {
  pollfd waiting{.fd = descriptor, .events = events, .revents = 0};
  return ::poll(&waiting, 1, 0) > 0;
}

[[noreturn]] void throw_loop_error(const error_code& error) {
  throw EventLoopError(system_error("cannot wait for events", error.value()).message);
}

}  // namespace

struct EventLoop::State {
  struct Watched {
    explicit Watched(asio::io_context& context) : descriptor(context) {}
    asio::posix::stream_descriptor descriptor;
    Callback on_readable;
    Callback on_writable;
    bool watched = true;
  };
  /// Shared by the table and the waits in flight: a callback may unwatch its own descriptor, and a
  /// wait that was cancelled reports so later.
  using Shared = std::shared_ptr<Watched>;

  struct Timer {
    explicit Timer(asio::io_context& context) : timer(context) {}
    asio::steady_timer timer;
    Callback callback;
  };

  State() = default;
  State(State&&) = delete;
  State& operator=(State&&) = delete;
  ~State() {
    // Released, so that asio does not close what is not its own.
    for (auto& [descriptor, it] : watched) it->descriptor.release();
  }

  Shared find_or_add(int descriptor);
  void wait_for_reading(const Shared& it);
  void wait_for_writing(const Shared& it);
  void rearm();
  void fire(TimerId id);
  void wait_for_signal();
  void wake_at(Clock::time_point at);
  void run_before_waiting();

  asio::io_context context{1};
  /// Stays set when something else ends a wait: most waits want the same end as the one before,
  /// and to set it again costs a system call.
  asio::steady_timer timer{context};
  std::optional<Clock::time_point> timer_at;
  Clock::time_point wait_until;
  asio::signal_set signals{context};
  SignalCallback on_signal;
  std::unordered_map<int, Shared> watched;
  std::vector<Shared> to_rearm;  ///< Readable ones whose callback has run, until the next wait.
  std::vector<Callback> at_next_wait;
  std::unordered_map<TimerId, Timer> timers;
  TimerId last_timer = 0;
  int called = 0;  ///< Callbacks in this run_once().
  /// A watch was removed, and its event may be on its way: asio reports that as one of the next new
  /// watch, which it puts into the same place.
  bool unwatched_some = false;
  bool expired = false;
};

EventLoop::State::Shared EventLoop::State::find_or_add(int descriptor) {
  Shared& it = watched[descriptor];
  if (it == nullptr) {
    auto made = std::make_shared<Watched>(context);
    error_code error;
    static_cast<void>(made->descriptor.assign(descriptor, error));
    // The user may have as many watches as fs.epoll.max_user_watches allows.
    if (error) throw_loop_error(error);
    it = std::move(made);
  }
  return it;
}

void EventLoop::State::wait_for_reading(const Shared& it) {
  it->descriptor.async_wait(asio::posix::descriptor_base::wait_read, [this, it](error_code error) {
    if (!it->watched) return;
    check(!error, "a descriptor that can be waited for");
    if (unwatched_some && !is_ready(it->descriptor.native_handle(), POLLIN)) {
      return wait_for_reading(it);
    }
    to_rearm.push_back(it);
    ++called;
    it->on_readable();
  });
}

void EventLoop::State::wait_for_writing(const Shared& it) {
  it->descriptor.async_wait(asio::posix::descriptor_base::wait_write, [this, it](error_code error) {
    if (!it->watched || !it->on_writable) return;
    check(!error, "a descriptor that can be waited for");
    if (unwatched_some && !is_ready(it->descriptor.native_handle(), POLLOUT)) {
      return wait_for_writing(it);
    }
    ++called;
    std::exchange(it->on_writable, nullptr)();
  });
}

void EventLoop::State::rearm() {
  // Not in the callback's own turn: data that it left unread would be reported again without end.
  for (const Shared& it : std::exchange(to_rearm, {})) {
    if (it->watched) wait_for_reading(it);
  }
}

void EventLoop::State::fire(TimerId id) {
  const auto found = timers.find(id);
  if (found == timers.end()) return;  // Cancelled when it was on its way already.
  const auto fired = timers.extract(found);
  ++called;
  fired.mapped().callback();
}

void EventLoop::State::wait_for_signal() {
  signals.async_wait([this](error_code error, int signal) {
    if (error) return;
    wait_for_signal();
    ++called;
    on_signal(signal);
  });
}

void EventLoop::State::run_before_waiting() {
  if (at_next_wait.empty()) return;
  for (Callback& callback : std::exchange(at_next_wait, {})) callback();
}

void EventLoop::State::wake_at(Clock::time_point at) {
  if (timer_at && *timer_at <= at + kLate) return;
  timer_at = at;
  timer.expires_at(at);
  timer.async_wait([this](error_code error) {
    if (error) return;
    timer_at.reset();
    expired = Clock::now() + kLate >= wait_until;
    if (!expired) wake_at(wait_until);
  });
}

EventLoop::EventLoop() {
  try {
    state_ = std::make_unique<State>();
  } catch (const boost::system::system_error& refused) {
    throw_loop_error(refused.code());
  }
}
EventLoop::~EventLoop() = default;

void EventLoop::run_once(std::optional<Duration> timeout) {
  State& state = *state_;
  state.run_before_waiting();
  state.rearm();
  state.context.restart();
  state.called = 0;
  if (!timeout || timeout->count() > 0) {
    state.expired = false;
    state.wait_until = Clock::now() + timeout.value_or(kForever);
    state.wake_at(state.wait_until);
    // More than one round only for what was cancelled before, and for a timer that was set for an
    // earlier wait.
    while (state.called == 0 && !state.expired) state.context.run_one();
  }
  state.context.poll();
  state.unwatched_some = false;
}

void EventLoop::watch_readable(int descriptor, Callback callback) {
  const State::Shared it = state_->find_or_add(descriptor);
  const bool is_new = !it->on_readable;
  it->on_readable = std::move(callback);
  if (is_new) state_->wait_for_reading(it);
}

void EventLoop::when_writable(int descriptor, Callback callback) {
  const State::Shared it = state_->find_or_add(descriptor);
  const bool is_new = !it->on_writable;
  it->on_writable = std::move(callback);
  if (is_new) state_->wait_for_writing(it);
}

void EventLoop::unwatch(int descriptor) {
  const auto found = state_->watched.find(descriptor);
  if (found == state_->watched.end()) return;
  found->second->watched = false;
  found->second->descriptor.release();
  state_->watched.erase(found);
  state_->unwatched_some = true;
}

EventLoop::TimerId EventLoop::after(Duration delay, Callback callback) {
  State* const state = state_.get();
  const TimerId id = ++state->last_timer;
  State::Timer& timer = state->timers.try_emplace(id, state->context).first->second;
  timer.callback = std::move(callback);
  // A timer that is due when it is set is refused under a simulated clock (libfaketime), and none
  // comes after it.
  constexpr Duration kLeast{1};
  timer.timer.expires_after(std::max(delay, kLeast));
  timer.timer.async_wait([state, id](error_code error) {
    if (!error) state->fire(id);
  });
  return id;
}

void EventLoop::cancel(TimerId timer) { state_->timers.erase(timer); }

void EventLoop::post(Callback callback) {
  asio::post(state_->context, [state = state_.get(), callback = std::move(callback)]() mutable {
    ++state->called;
    callback();
  });
}

void EventLoop::before_waiting(Callback callback) {
  state_->at_next_wait.push_back(std::move(callback));
}

void EventLoop::watch_signals(const std::vector<int>& signals, SignalCallback callback) {
  check(!state_->on_signal, "signals that are taken over once a loop");
  for (const int signal : signals) {
    error_code error;
    check(!state_->signals.add(signal, error), "a signal that can be caught");
  }
  state_->on_signal = std::move(callback);
  state_->wait_for_signal();
}

void EventLoop::forget_signals(const std::vector<int>& signals) {
  for (const int signal : signals) {
    error_code error;
    check(!state_->signals.remove(signal, error), "a signal that can be let go of");
  }
}

Duration EventLoop::now() {
  return std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch());
}

void let_pass(Duration time) {
  EventLoop loop;
  const Duration until = EventLoop::now() + time;
  while (EventLoop::now() < until) loop.run_once(until - EventLoop::now());
}

}  // namespace trainyard::sys

#include "workers/pool_backend.h"

#include <expected>

namespace trainyard::workers {

void PoolCall::settle(detail::PoolAnswer answer) {
  if (!answer) answer.error().child = child_;
  {
    const std::scoped_lock lock(mutex_);
    // The answer that is not wanted goes without the lock: it may have memory to give back.
    if (std::exchange(settled_, true)) return;
    answer_ = std::move(answer);
  }
  changed_.notify_all();
}

void PoolCall::fail(CallError::Kind kind, std::string message) {
  settle(std::unexpected(CallError{.kind = kind, .child = child_, .message = std::move(message)}));
}

detail::PoolAnswer PoolCall::take(Clock::time_point deadline, const std::stop_token& stop) {
  const std::stop_callback at_stop(stop, [this] {
    const std::scoped_lock lock(mutex_);
    changed_.notify_all();
  });
  // It goes before the callback, which takes it.
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, deadline, [&] { return settled_ || stop.stop_requested(); });
  if (std::exchange(settled_, true)) return std::move(answer_);
  const bool stopped = stop.stop_requested();
  return std::unexpected(CallError{
      .kind = stopped ? CallError::Kind::Stopped : CallError::Kind::Late,
      .child = child_,
      .message = stopped ? "it was told to stop" : "there was no answer in the time that it had"});
}

bool PoolCall::is_settled() const {
  const std::scoped_lock lock(mutex_);
  return settled_;
}

}  // namespace trainyard::workers

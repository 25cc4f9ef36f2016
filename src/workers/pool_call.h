// One call of a pool, from when it is asked for until its answer is taken or nobody wants it any
// more. Any thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <utility>

#include "trainyard/detail/pool_core.h"
#include "trainyard/pool_options.h"

namespace trainyard::workers {

class PoolCall {
 public:
  using Clock = std::chrono::steady_clock;

  explicit PoolCall(int child) : child_(child) {}

  [[nodiscard]] int child() const { return child_; }
  /// The answer. One that has one keeps it: what comes late comes to nothing.
  void settle(detail::PoolAnswer answer);
  void fail(CallError::Kind kind, std::string message);
  /// Waits for it; that it is too late, or was stopped, is an answer, too. Once.
  detail::PoolAnswer take(Clock::time_point deadline, const std::stop_token& stop);
  [[nodiscard]] bool is_settled() const;

 private:
  const int child_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool settled_ = false;  ///< Guarded, as the answer.
  detail::PoolAnswer answer_;
};

}  // namespace trainyard::workers

// Where the objects of a pool live, and how calls get there: workers/pool_processes.h or
// workers/pool_threads.h. Any thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "base/time.h"
#include "trainyard/buffer.h"
#include "trainyard/detail/codec.h"
#include "trainyard/detail/pool_core.h"
#include "trainyard/pool_options.h"

namespace trainyard::workers {

/// One call of a pool, from when it is asked for until its answer is taken or nobody wants it any
/// more.
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

inline constexpr std::string_view kPoolHasEnded = "the pool has ended";
inline constexpr std::string_view kPoolHasRestarted = "a new object has taken its place";
/// The error of a call that is one more than may be open.
std::string too_many_open(std::size_t open_max);
/// Arguments or a result, or the error that they have more JSON or buffers than a pool of either
/// kind carries. `what`: "its arguments".
detail::PoolAnswer within_limit(detail::PoolAnswer it, std::string_view what);

class PoolBackend {
 public:
  PoolBackend() = default;
  PoolBackend(PoolBackend&&) = delete;
  PoolBackend& operator=(PoolBackend&&) = delete;
  virtual ~PoolBackend() = default;

  /// Has the child of each of these calls make it. Does not wait, and settles those that cannot be
  /// made.
  virtual void send(std::size_t method, detail::RemotePayload arguments,
                    std::span<const std::shared_ptr<PoolCall>> calls) = 0;
  /// False: the pool has ended.
  virtual bool restart(int child) = 0;
  /// Ends all children; all calls are settled before it returns. Again: no effect.
  virtual void shutdown(Duration grace) = 0;
  virtual Result<Buffer> alloc(DType type, Dimensions shape) = 0;
};

}  // namespace trainyard::workers

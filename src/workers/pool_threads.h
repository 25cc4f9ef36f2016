// The objects of a pool, each in a thread of this process.
//
// A thread cannot be ended from outside: who restarts or shuts down waits for the call that it is
// in, though nobody waits for that call's answer any more. Any thread.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "trainyard/buffer.h"
#include "trainyard/detail/codec.h"
#include "trainyard/detail/pool_core.h"
#include "trainyard/pool_options.h"
#include "workers/pool_backend.h"

namespace trainyard::workers {

class PoolThreads final : public PoolBackend {
 public:
  static Result<std::unique_ptr<PoolBackend>> start(const PoolOptions& options,
                                                    detail::PoolMake make);
  PoolThreads(const PoolOptions& options, detail::PoolMake make);
  PoolThreads(PoolThreads&&) = delete;
  PoolThreads& operator=(PoolThreads&&) = delete;
  ~PoolThreads() override;

  void send(std::size_t method, detail::RemotePayload arguments,
            std::span<const std::shared_ptr<PoolCall>> calls) override;
  bool restart(int child) override;
  void shutdown(Duration grace) override;
  Result<Buffer> alloc(DType type, Dimensions shape) override;

 private:
  struct Job {
    std::size_t method = 0;
    detail::RemotePayload arguments;
    std::shared_ptr<PoolCall> call;
  };
  struct Child {
    int index = 0;
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Job> jobs;  ///< Guarded, as all below but the thread.
    std::shared_ptr<PoolCall> running;
    bool again = false;  ///< The thread makes a new object next.
    bool over = false;
    std::thread thread;
  };
  Result<void> start_threads();
  void run(Child& child) const;
  /// True: until it is to make a new object. `error`: why there is none.
  static bool serve(Child& child, detail::PoolObject* object,
                    const std::optional<CallError>& error);
  /// All that is open, with the lock of the child.
  static std::vector<std::shared_ptr<PoolCall>> take_open(Child& child);

  const std::size_t open_max_;
  const detail::PoolMake make_;
  std::vector<std::unique_ptr<Child>> children_;
  std::mutex ending_;  ///< Whoever has it joins the threads.
};

}  // namespace trainyard::workers

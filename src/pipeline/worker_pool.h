// Threads that help with work that somebody else leads. The one who leads it does his part, too, so
// work gets done without any worker, and small work is done before one has woken up.
//
// Knows nothing of steps. Any thread may open, close and wake; the pool outlives what is open.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace trainyard::pipeline {

/// Something in parts, some of which can be done now.
class PooledWork {
 public:
  PooledWork() = default;
  PooledWork(const PooledWork&) = delete;
  PooledWork& operator=(const PooledWork&) = delete;
  virtual ~PooledWork() = default;

  /// Takes one part and does it; false when none can be taken now. By several threads at once, and
  /// does not throw. Who makes more parts ready wakes the pool.
  virtual bool do_one() = 0;
  /// How many could be taken now. Takes no lock.
  [[nodiscard]] virtual std::size_t ready() const = 0;
};

class WorkerPool {
 public:
  /// Starts them.
  explicit WorkerPool(int workers);
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;
  /// Waits for them. Nothing is open.
  ~WorkerPool();

  /// Workers look at it from now on, when they are woken, until it is closed.
  void open(PooledWork& work);
  /// No worker is in it any more when this returns: it waits for those that are.
  void close(PooledWork& work);
  /// There is something to take. Wakes one worker, who wakes the next when there is more; costs a
  /// few nanoseconds when all are awake.
  void wake();

  /// On a worker: it waits for something that others do, and somebody else takes its place
  /// meanwhile, so that those others are not waited for in vain. On other threads: nothing. At most
  /// kThreadsMax threads in all.
  class Blocked {
   public:
    Blocked();
    Blocked(const Blocked&) = delete;
    Blocked& operator=(const Blocked&) = delete;
    ~Blocked();

   private:
    WorkerPool* pool_;
  };
  static constexpr int kThreadsMax = 64;

  [[nodiscard]] int threads() const;

 private:
  struct Open {
    PooledWork* work;
    int workers_in_it;
  };
  void work();
  /// Does what it can in all that is open. Holds the lock before and after.
  void do_all(std::unique_lock<std::mutex>& lock);
  void start_worker();
  void wake_one();

  mutable std::mutex mutex_;
  std::condition_variable work_there_;
  std::condition_variable left_;
  std::vector<Open> open_;
  std::vector<std::thread> threads_;
  std::uint64_t calls_ = 0;    ///< Of wake().
  std::uint64_t changes_ = 0;  ///< Of the places in `open_`.
  int idle_ = 0;
  int called_ = 0;  ///< Woken, and not up yet.
  int wanted_;      ///< So many that do not wait for others.
  int blocked_ = 0;
  bool ending_ = false;
};

}  // namespace trainyard::pipeline

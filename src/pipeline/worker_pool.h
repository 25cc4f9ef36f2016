// Threads that help with work that somebody else leads. The one who leads it does his part, too, so
// work gets done without any worker, and small work is done before one has woken up.
//
// Knows nothing of steps. Any thread may open, close and wake; the pool outlives what is open.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <thread>
#include <utility>
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

/// Runs numbered parts, side by side where none must wait for another: each once, after all it must
/// wait for. The thread that runs it does its share.
///
/// Made once, run as often as one likes; a run allocates nothing. One run at a time, of one thread.
class SideBySide final : private PooledWork {
 public:
  /// Does the part with that number. False: it failed, and no part after it in the order is begun;
  /// those before it are. Must not throw. A reference to a function that lives longer.
  class Do {
   public:
    template <class F>
    explicit Do(const F& function)
        : state_(&function), call_([](const void* state, std::size_t part) {
            return (*static_cast<const F*>(state))(part);
          }) {}
    bool operator()(std::size_t part) const { return call_(state_, part); }

   private:
    const void* state_;
    bool (*call_)(const void*, std::size_t);
  };
  enum class Order : std::uint8_t { Upward, Downward };

  /// `pairs`: two parts that never run at the same time, and run in their order.
  SideBySide(std::size_t parts, std::span<const std::pair<std::size_t, std::size_t>> pairs,
             Order order);

  /// Returns when no part runs any more. `pool` may be none.
  void run(WorkerPool* pool, const Do& act);

 private:
  bool do_one() override;
  [[nodiscard]] std::size_t ready() const override;
  /// The next part that can be done in the order; none: `parts_`.
  std::size_t take();
  void ended(std::size_t place);
  void make_ready(std::size_t place);
  /// In the order of running: 0 is the first.
  [[nodiscard]] std::size_t place_of(std::size_t part) const;

  const std::size_t parts_;
  const Order order_;
  std::vector<int> before_;                      ///< How many each waits for.
  std::vector<std::vector<std::size_t>> after_;  ///< Who waits for it. By place, as all below.

  const Do* act_ = nullptr;  ///< During a run.
  WorkerPool* pool_ = nullptr;
  std::vector<std::atomic<int>> waits_for_;
  std::vector<std::atomic<std::uint64_t>> ready_;  ///< A bit a part.
  std::atomic<std::size_t> failed_at_ = 0;         ///< The first that failed, or `parts_`.
  std::atomic<std::size_t> left_ = 0;
  std::atomic<std::uint32_t> news_ = 0;  ///< Something became ready, or all is done.
};

}  // namespace trainyard::pipeline

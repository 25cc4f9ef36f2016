// Work beside the steps of an iteration, on the workers and on whoever waits for them. Any thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "pipeline/bus_state.h"
#include "pipeline/worker_pool.h"
#include "trainyard/event_bus.h"
#include "trainyard/pipeline_base.h"

namespace trainyard::pipeline {

class Background final : private PooledWork {
 public:
  /// Number of pieces of work that may wait. A thread that adds one more does one itself first.
  static constexpr std::size_t kWaitingMax = 1'024;

  /// Both outlive this. When one piece of work fails, the others wait for no event of the bus any
  /// more.
  Background(WorkerPool& pool, EventBus& bus);
  ~Background() override;

  void add(std::string name, std::function<void()> work);
  /// Nothing was added since the last time that it was finished. Costs nothing to ask.
  [[nodiscard]] bool idle() const { return !added_.load(std::memory_order_acquire); }
  /// Helps until none is left, and returns what went wrong since the last time.
  std::vector<StepError> finish();

 private:
  struct Work {
    std::string name;
    std::function<void()> act;
  };
  bool do_one() override;
  [[nodiscard]] std::size_t ready() const override {
    return ready_.load(std::memory_order_relaxed);
  }

  WorkerPool& pool_;
  EventBus& bus_;
  std::mutex mutex_;
  std::condition_variable ended_;
  std::deque<Work> waiting_;
  std::vector<StepError> errors_;
  std::unique_ptr<WaitsCutShort> failed_;
  std::size_t unfinished_ = 0;          ///< Those that wait, and those that are being done.
  std::atomic<std::size_t> ready_ = 0;  ///< As many as wait.
  std::atomic<bool> added_ = false;
};

}  // namespace trainyard::pipeline

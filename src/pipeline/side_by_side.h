// Runs numbered parts, side by side where none must wait for another: each once, after all it must
// wait for. The thread that runs it does its share.
//
// Made once, run as often as one likes; a run allocates nothing. One run at a time, of one thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "pipeline/worker_pool.h"

namespace trainyard::pipeline {

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

// The search for an order of the waiting tasks in which all are done soon: plays the run through
// with several orders, before it begins.
//
// The played runs are simpler than the scheduler's (nothing fails, nothing is passed too often),
// but use the same ledger. Pure; the same input gives the same order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "model/resources.h"

namespace trainyard::schedule {

/// A task that is to be run. A task that does not load first has its whole request from its start.
struct Prospect {
  Duration load{0};
  Duration train{0};
  model::Request request;
  bool two_phase = false;
  /// The part of a GPU that keeps it busy when it is alone there, in thousandths; 0: sharing slows
  /// no task down.
  int gpu_share = 0;
};

/// The available resources, with nothing running.
struct Stock {
  Bytes memory;
  model::Cpus cpus;
  std::vector<Bytes> gpus;
  int gpu_utilization_max = 1000;  ///< utilization-limit.gpu, in thousandths.
  /// Tasks are spread over up to this number of GPUs before they share any, while none waits for a
  /// whole one.
  std::size_t spread_max = 0;
};

struct Foresight {
  std::vector<std::uint32_t> order;  ///< Places in the prospects, the first first.
  int ahead_max = 0;                 ///< Number of tasks to have loaded, or loading, before they
                                     ///< train.
  Duration makespan{0};              ///< The duration of the whole run.
  int runs = 0;                      ///< Number of runs that were played.
};

/// The search for an order, in pieces: the best so far may be followed while it goes on.
class LookAhead {
 public:
  /// Plays at most `runs_max` runs in all. Each prospect must fit into the stock.
  LookAhead(std::vector<Prospect> prospects, Stock stock, int runs_max);
  LookAhead(LookAhead&&) noexcept;
  LookAhead& operator=(LookAhead&&) noexcept;
  ~LookAhead();

  /// Plays `runs` more runs, as long as there is something to be gained. Returns whether it has
  /// found a better order. Costs about 4 microseconds for each task of each run.
  bool go_on(int runs);
  /// Nothing more is to be gained, or all runs have been played.
  [[nodiscard]] bool is_done() const;
  /// After the first run.
  [[nodiscard]] const Foresight& best() const;

 private:
  struct Search;
  std::unique_ptr<Search> search_;
};

/// The whole search at once.
Foresight look_ahead(const std::vector<Prospect>& prospects, const Stock& stock, int runs_max);

/// A lower bound of every run: the longest task, or what all of them need of memory, of CPUs and of
/// GPUs for as long as they take, spread over all there is.
Duration shortest_possible(const std::vector<Prospect>& prospects, const Stock& stock);

}  // namespace trainyard::schedule

// In which order to run what waits, so that all of it is done soon: by playing the run through,
// with several orders, before it begins.
//
// The runs that are played are simpler than the scheduler's (nothing fails, nothing is passed too
// often), but hold to the same ledger. Pure; the same input gives the same order.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "model/resources.h"

namespace trainyard {

/// A task that is to be run. One that does not load first has everything it asks for from its
/// start.
struct Prospect {
  Duration load{0};
  Duration train{0};
  Request request;
  bool two_phase = false;
};

/// What there is to give, with nothing running.
struct Stock {
  Bytes memory;
  Cpus cpus;
  std::vector<Bytes> gpus;
};

struct Foresight {
  std::vector<std::uint32_t> order;  ///< Places in the prospects, the first first.
  int ahead_max = 0;                 ///< How many should be loaded, or loading, and not train yet.
  Duration makespan{0};              ///< How long all of it takes then.
  int runs = 0;                      ///< How many were played.
};

/// Plays at most `runs_max` runs. Costs about 4 microseconds for each task of each run. Each
/// prospect must fit into the stock.
Foresight look_ahead(const std::vector<Prospect>& prospects, const Stock& stock, int runs_max);

/// No run can be shorter than this: the longest task, or what all of them need of memory, of CPUs
/// and of GPUs for as long as they take, spread over all there is.
Duration shortest_possible(const std::vector<Prospect>& prospects, const Stock& stock);

}  // namespace trainyard

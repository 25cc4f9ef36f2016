// One simulated run: the real scheduler and the real loop on made-up machines, one in most,
// watched.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/faults.h"

namespace trainyard::sim {

struct Outcome {
  std::optional<std::string> broken;  ///< The first rule that was broken, in words.
  FaultCounts faults;
  std::uint64_t events = 0;
  std::uint64_t tasks = 0;
};

/// Runs what the seed makes, to its end. The same seed gives the same run.
Outcome run_seed(std::uint64_t seed);

/// The last turns of the run that the seed makes, in words.
std::string last_turns(std::uint64_t seed, int count);

}  // namespace trainyard::sim

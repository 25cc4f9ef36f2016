// Runs seeds on a scheduler with a planted bug (sim/planted/planted.py) until a checker finds it.
// Ends with 0 when it was found, be it by a check in the scheduler itself.
#include <csignal>
#include <cstdint>
#include <cstdlib>

#include <unistd.h>

#include <fmt/format.h>

#include "sim/run_sim.h"

int main() {
  std::signal(SIGABRT, [](int) { ::_exit(0); });
  constexpr std::uint64_t kSeeds = 2'000;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const trainyard::sim::Outcome outcome = trainyard::sim::run_seed(seed);
    if (!outcome.broken) continue;
    fmt::print("found with seed {}: {}\n", seed, *outcome.broken);
    return 0;
  }
  fmt::print("not found with {} seeds\n", kSeeds);
  return 1;
}

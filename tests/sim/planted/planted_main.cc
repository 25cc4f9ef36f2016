// Runs seeds on a scheduler with a planted bug (sim/planted/planted.py) until a checker finds it:
// each with one yard, and every other one with several on one machine as well. Ends with 0 when it
// was found, be it by a check in the scheduler itself.
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>

#include <unistd.h>

#include <fmt/format.h>

#include "sim/many_yards.h"
#include "sim/run_sim.h"

namespace {

std::optional<std::string> what_breaks(std::uint64_t seed) {
  constexpr std::uint64_t kOneYardPlays = 2;
  std::optional<std::string> broken = trainyard::sim::run_seed(seed).broken;
  if (broken || seed % kOneYardPlays != 0) return broken;
  return trainyard::sim::play_many_yards(seed / kOneYardPlays).broken;
}

}  // namespace

int main() {
  std::signal(SIGABRT, [](int) { ::_exit(0); });
  constexpr std::uint64_t kSeeds = 2'000;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const std::optional<std::string> broken = what_breaks(seed);
    if (!broken) continue;
    fmt::print("found with seed {}: {}\n", seed, *broken);
    return 0;
  }
  fmt::print("not found with {} seeds\n", kSeeds);
  return 1;
}

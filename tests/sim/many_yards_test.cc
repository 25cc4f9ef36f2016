// TRAINYARD_SIM_SEED=k plays that seed alone.
#include "sim/many_yards.h"

#include <cstdlib>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/duration_text.h"

namespace trainyard::sim {
namespace {

constexpr std::uint64_t kPlays = 200;

TEST(ManyYards, ArePromisedNothingTwiceAndNobodyIsStuckOrStarved) {
  // No thread of this program changes its environment.
  const char* const only = std::getenv("TRAINYARD_SIM_SEED");  // NOLINT(concurrency-mt-unsafe)
  const std::uint64_t first = only == nullptr ? 0 : std::stoull(only);
  const std::uint64_t last = only == nullptr ? kPlays : first + 1;
  ManyYardsOutcome all;
  for (std::uint64_t seed = first; seed < last; ++seed) {
    const ManyYardsOutcome outcome = play_many_yards(seed);
    ASSERT_FALSE(outcome.broken) << "seed " << seed << ": " << *outcome.broken
                                 << "\nrepeat with TRAINYARD_SIM_SEED=" << seed;
    all.add(outcome);
  }
  fmt::print(
      "{} plays: {} tasks, {} claims refused, {} turns in the middle of others' claims, {} kills, "
      "{} stops and {} in a claim, {} long ones, {} starts refused, {} times somebody gave way, "
      "longest wait {}\n",
      last - first, all.tasks, all.refused, all.in_between, all.kills, all.stops,
      all.stops_in_a_claim, all.long_stops, all.starts_refused, all.gave_way,
      to_text(all.longest_wait));
  if (only != nullptr) return;
  EXPECT_GT(all.tasks, 5'000);
  EXPECT_GT(all.refused, 100);
  EXPECT_GT(all.in_between, 1'000);
  EXPECT_GT(all.kills, 50);
  EXPECT_GT(all.stops, 50);
  EXPECT_GT(all.stops_in_a_claim, 20);
  EXPECT_GT(all.long_stops, 5);
  EXPECT_GT(all.starts_refused, 100);
  EXPECT_GT(all.gave_way, 100);
}

}  // namespace
}  // namespace trainyard::sim

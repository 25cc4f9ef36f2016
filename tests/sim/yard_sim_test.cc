// Whole runs, made up from seeds: the real scheduler and the real loop, made-up machines, and
// checkers that watch from outside. A seed that fails is named, and fails the same way every time.
//
// TRAINYARD_SIM_SEEDS=n runs the seeds 0 to n-1 instead of 2,000, TRAINYARD_SIM_SEED=k only that.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model/resources.h"
#include "sim/faults.h"
#include "sim/fleet_workload.h"
#include "sim/run_sim.h"
#include "sim/workload.h"

namespace trainyard::sim {
namespace {

constexpr std::uint64_t kSeeds = 2'000;
constexpr std::uint64_t kTimesMin = 100;

std::optional<std::uint64_t> number_from(const char* variable) {
  // No thread of this program changes its environment.
  const char* const text = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe)
  if (text == nullptr || *text == '\0') return std::nullopt;
  return std::stoull(text);
}

/// Runs one seed; says how to repeat it when a rule was broken.
Outcome run_and_tell(std::uint64_t seed) {
  Outcome outcome = run_seed(seed);
  if (outcome.broken) {
    ADD_FAILURE() << last_turns(seed, 40) << "seed " << seed << ": " << *outcome.broken
                  << "\nrepeat with: make sim SEED=" << seed;
  }
  return outcome;
}

TEST(Yard, KeepsEveryRuleWhateverTheMachineDoes) {
  if (const auto seed = number_from("TRAINYARD_SIM_SEED")) {
    const Outcome outcome = run_and_tell(*seed);
    fmt::print("seed {}: {} tasks, {} events; {}\n", *seed, outcome.tasks, outcome.events,
               to_text(outcome.faults));
    return;
  }
  const std::uint64_t seeds = number_from("TRAINYARD_SIM_SEEDS").value_or(kSeeds);
  FaultCounts faults;
  std::uint64_t events = 0;
  std::uint64_t tasks = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const Outcome outcome = run_and_tell(seed);
    ASSERT_FALSE(outcome.broken);
    faults.add(outcome.faults);
    events += outcome.events;
    tasks += outcome.tasks;
  }
  fmt::print("{} seeds, {} tasks, {} events\nfault kinds over {} seeds: {}\n", seeds, tasks, events,
             seeds, to_text(faults));
  if (seeds < kSeeds) return;
  for (std::size_t kind = 0; kind < kFaultKinds; ++kind) {
    const auto fault = static_cast<Fault>(kind);
    EXPECT_GE(faults.of(fault), kTimesMin) << to_text(fault);
  }
}

TEST(Yard, IsSimulatedTheSameWayEveryTime) {
  // One machine, one, several.
  for (const std::uint64_t seed : {1U, 7U, 11U}) {
    const std::string once = last_turns(seed, 1'000'000);
    EXPECT_FALSE(once.empty());
    EXPECT_EQ(once, last_turns(seed, 1'000'000)) << "seed " << seed;
  }
}

TEST(Fleet, HasAMachineThatStaysOnWhichAllOfItsTasksFit) {
  std::map<std::uint64_t, int> of_machines;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const std::uint64_t count = machines_of(seed);
    ++of_machines[count];
    if (count == 1) continue;
    const FleetWorkload fleet = make_fleet_workload(seed);
    const model::Capacity first = make_workload(seed).capacity;
    EXPECT_EQ(fleet.remotes.size() + (fleet.local_joins ? 1 : 0), count) << "seed " << seed;
    const bool is_local = fleet.local_joins && fleet.yard.capacity == first;
    const bool is_remote = std::ranges::any_of(fleet.remotes, [&](const FleetMember& it) {
      return it.workload.capacity == first && !it.leaves_at && !it.changes;
    });
    EXPECT_TRUE(is_local || is_remote) << "seed " << seed;
  }
  EXPECT_GT(of_machines[1], 400) << "most seeds have one machine";
  for (const std::uint64_t count : {2U, 3U, 4U}) EXPECT_GT(of_machines[count], 5);
}

TEST(Workload, HasThirtyTasksInThreeGroupsAtLeast) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const Workload workload = make_workload(seed);
    EXPECT_GE(workload.plan.tasks.size(), 30U) << "seed " << seed;
    EXPECT_GE(workload.plan.groups.size(), 3U) << "seed " << seed;
  }
}

}  // namespace
}  // namespace trainyard::sim

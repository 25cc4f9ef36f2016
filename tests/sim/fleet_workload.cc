#include "sim/fleet_workload.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "model/plan.h"
#include "sim/random.h"

namespace trainyard::sim {
namespace {

constexpr std::uint64_t kOneInSoMany = 10;
constexpr std::uint64_t kMachinesMax = 4;

/// Dice of its own: a run on one machine is what it was without it.
Random fleet_dice(std::uint64_t seed) { return Random(seed ^ 0xF1EE7ULL); }

/// Whether the trouble is the yard's, wherever tasks run.
bool is_of_yard(const Trouble& trouble) {
  using enum Trouble::Kind;
  return trouble.kind == FillDisk || trouble.kind == StopYard || trouble.kind == Interrupt ||
         trouble.kind == AskToKill;
}

std::vector<Trouble> troubles_of_yard(const Workload& made) {
  std::vector<Trouble> troubles;
  for (Trouble trouble : made.troubles) {
    // A machine that slept stops its yard, and the clocks of others go on.
    if (trouble.kind == Trouble::Kind::JumpClock) trouble.kind = Trouble::Kind::StopYard;
    if (is_of_yard(trouble)) troubles.push_back(trouble);
  }
  return troubles;
}

/// The guard behind the keeper of an agent ends the agent: that is played as the agent's death.
std::vector<Trouble> troubles_of_machine(const Workload& made) {
  std::vector<Trouble> troubles = made.troubles;
  std::erase_if(troubles, [](const Trouble& it) {
    return is_of_yard(it) || it.kind == Trouble::Kind::JumpClock ||
           it.kind == Trouble::Kind::KillGuard;
  });
  return troubles;
}

/// A machine for the plan of this run with the troubles of another one, and often with what that
/// has, on which only some of the tasks fit.
Workload machine_from(const Workload& made, std::uint64_t another_seed, Random& random) {
  const Workload another = make_workload(another_seed);
  Workload machine = made;
  const bool is_another_kind = random.one_in(2) || made.gpus.empty() != another.gpus.empty();
  if (is_another_kind) {
    machine.capacity = another.capacity;
    machine.gpus = another.gpus;
    machine.answer_at = another.answer_at;
  }
  machine.troubles = troubles_of_machine(another);
  return machine;
}

/// Tasks wait for a machine that is gone as long as it takes: where one is gone for good the GPUs
/// of the others are not.
void let_gpus_come_back(std::vector<Trouble>& troubles) {
  for (Trouble& trouble : troubles) {
    if (trouble.kind == Trouble::Kind::LoseGpu) trouble.memory.count |= 1;
  }
}

std::vector<LinkTrouble> make_link_troubles(Random& random, Duration lease) {
  using enum LinkTrouble::Kind;
  std::vector<LinkTrouble> troubles;
  const auto some = [&](LinkTrouble::Kind kind, std::uint64_t one_in) {
    if (!random.one_in(one_in)) return;
    // About as often shorter than the lease as longer.
    troubles.push_back({.kind = kind,
                        .at = Instant{random.between(Duration{500}, Duration{20'000})},
                        .lasts = random.between(Duration{1}, 2 * lease)});
  };
  for (int i = 0; i < 5; ++i) {
    some(Split, 1);
    some(Cut, 2);
    some(KillAgent, 6);
    some(Reboot, 6);
  }
  return troubles;
}

FleetMember make_member(Workload workload, Random& random) {
  FleetMember member{.workload = std::move(workload),
                     .lease = random.between(Duration{800}, Duration{6'000})};
  member.workload.additions.clear();
  member.troubles = make_link_troubles(random, member.lease);
  if (random.one_in(3)) {
    member.connects_at = Instant{random.between(Duration{100}, Duration{10'000})};
  }
  return member;
}

/// Some of them as a batch system does.
void give_for_a_time(FleetWorkload& fleet, Random& random) {
  constexpr int kAllocationsMax = 4;
  const Duration for_ends = fleet.yard.policy.stop_grace + kForNewsOfEnds;
  for (FleetMember& member : fleet.remotes) {
    if (!random.one_in(3)) continue;
    member.allocation = for_ends + random.between(Duration{2'000}, Duration{20'000});
    member.allocations = 1 + static_cast<int>(random.below(kAllocationsMax));
  }
}

}  // namespace

std::uint64_t machines_of(std::uint64_t seed) {
  Random random = fleet_dice(seed);
  return random.one_in(kOneInSoMany) ? 2 + random.below(kMachinesMax - 1) : 1;
}

FleetWorkload make_fleet_workload(std::uint64_t seed) {
  Random random = fleet_dice(seed);
  const std::uint64_t count = machines_of(seed);
  const Workload made = make_workload(seed);
  FleetWorkload fleet{.yard = made, .local_joins = random.one_in(3)};
  fleet.yard.troubles = troubles_of_yard(made);
  // Nothing is given up for starts that a machine refuses: that is played on one machine.
  fleet.yard.policy.machine_patience = model::Policy{}.machine_patience;
  // The one that the plan was made for.
  const std::uint64_t first = random.below(count);
  std::uint64_t number = 0;
  bool leaves = false;
  if (fleet.local_joins && number++ != first) {
    const Workload other = machine_from(made, seed + (std::uint64_t{1} << 33U), random);
    fleet.yard.capacity = other.capacity;
    fleet.yard.gpus = other.gpus;
    fleet.yard.answer_at = other.answer_at;
    std::ranges::copy(other.troubles, std::back_inserter(fleet.yard.troubles));
  } else if (fleet.local_joins) {
    std::ranges::copy(troubles_of_machine(made), std::back_inserter(fleet.yard.troubles));
  }
  for (; number < count; ++number) {
    const bool is_first = number == first;
    Workload workload = made;
    workload.troubles = troubles_of_machine(made);
    if (!is_first) workload = machine_from(made, seed + ((number + 2) << 33U), random);
    FleetMember member = make_member(std::move(workload), random);
    member.changes = !is_first && random.one_in(2);
    if (!is_first && random.one_in(2)) {
      leaves = true;
      member.leaves_at = Instant{random.between(Duration{1'000}, Duration{20'000})};
    }
    fleet.remotes.push_back(std::move(member));
  }
  give_for_a_time(fleet, random);
  if (leaves) {
    let_gpus_come_back(fleet.yard.troubles);
    for (FleetMember& member : fleet.remotes) let_gpus_come_back(member.workload.troubles);
  }
  return fleet;
}

}  // namespace trainyard::sim

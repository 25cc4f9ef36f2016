// The parts of a simulated run on several machines: the plan of a run on one, the machines, and the
// troubles between them and their yard, all from one seed.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/time.h"
#include "sim/workload.h"

namespace trainyard::sim {

/// Troubles between a yard and a machine that an agent looks after, with their times.
struct LinkTrouble {
  enum class Kind : std::uint8_t { Split, Cut, KillAgent, Reboot };
  Kind kind = Kind::Split;
  Instant at;
  Duration lasts{0};

  friend bool operator==(const LinkTrouble&, const LinkTrouble&) = default;
};

/// Between the last KILL on a machine that is taken away and that: as schedule/machine_book.h has
/// it.
constexpr Duration kForNewsOfEnds{5'000};

struct FleetMember {
  Workload workload;  ///< The plan of all, what there is on this machine, and its own troubles.
  Instant connects_at;
  Duration lease{0};
  bool changes = false;               ///< Each time that an agent begins there it may have less.
  std::optional<Instant> leaves_at;   ///< It is never reached again.
  Duration allocation{0};             ///< From joining until it is taken away, and given again;
  int allocations = 0;                ///< that often. Then it stays.
  std::vector<LinkTrouble> troubles;  ///< In no order.
};

struct FleetWorkload {
  Workload yard;            ///< The machine that the yard is on, with what people do there.
  bool local_joins = true;  ///< Tasks run there, too.
  std::vector<FleetMember> remotes;
};

/// The number of machines in the run of a seed: one in most, up to four.
std::uint64_t machines_of(std::uint64_t seed);

/// For a seed with several machines. There is always one on which every shape fits when it is
/// empty, and which comes back.
FleetWorkload make_fleet_workload(std::uint64_t seed);

}  // namespace trainyard::sim

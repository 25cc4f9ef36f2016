#include "sim/many_yards.h"

#include <algorithm>

#include "sim/shared_world.h"

namespace trainyard::sim {

void ManyYardsOutcome::add(const ManyYardsOutcome& more) {
  tasks += more.tasks;
  refused += more.refused;
  in_between += more.in_between;
  kills += more.kills;
  stops += more.stops;
  stops_in_a_claim += more.stops_in_a_claim;
  long_stops += more.long_stops;
  starts_refused += more.starts_refused;
  gave_way += more.gave_way;
  longest_wait = std::max(longest_wait, more.longest_wait);
}

ManyYardsOutcome play_many_yards(std::uint64_t seed) { return SharedWorld(seed).play(); }

}  // namespace trainyard::sim

// Several yards on one machine, made up from a seed: each with the real scheduler, the real loop
// and the real claims, on a board that is a list in memory. They take their turns in any order,
// also in the middle of each other's claims; they are killed, stopped and started anew; one sees
// only some of the GPUs, as in a container, and may be stopped for long while the others give way
// to it.
//
// The rules watched from outside: nothing is ever promised twice, all of it ends, and no yard waits
// for very long while others get the resources that it waits for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/time.h"

namespace trainyard::sim {

struct ManyYardsOutcome {
  std::optional<std::string> broken;  ///< The first broken rule, if any.
  int tasks = 0;                      ///< Tasks that have ended well.
  int refused = 0;                    ///< Claims.
  int in_between = 0;                 ///< Turns of others in the middle of a claim.
  int kills = 0;
  int stops = 0;
  int stops_in_a_claim = 0;
  int long_stops = 0;        ///< Stops of a yard that waits, and that the others give way to.
  int starts_refused = 0;    ///< By the machine.
  int gave_way = 0;          ///< Reports of reasons of that kind.
  Duration longest_wait{0};  ///< By a yard that got none of the resources it waited for.

  void add(const ManyYardsOutcome& more);
};

ManyYardsOutcome play_many_yards(std::uint64_t seed);

}  // namespace trainyard::sim

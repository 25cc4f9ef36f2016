// Text about other yards on the machine, for a user whose tasks wait. Pure; any thread.
#pragma once

#include <cstddef>
#include <string>

#include "model/waiting.h"

namespace trainyard::model {

// Each begins with a comma, and is empty where no other yard is in the way.

/// ", another user's run (uid 1001) has reserved 18 GB since 02:10".
std::string memory_words_of_neighbours(const Headroom& room);
/// ", 3 by your run 46 (sweep) since 02:10": the CPUs that each has reserved.
std::string cpu_words_of_neighbours(const Headroom& room);
/// ", another user's run (alice) has reserved 18 GB of GPU 0 since 02:10".
std::string card_words_of_neighbours(const Headroom& room, std::size_t gpu);

/// "gives way to another user's run (alice), which has waited since 02:10 and has no more of the
/// machine"; for a run of this user with the command that kills it.
std::string giving_way_words(const Reason& reason, const Headroom& room);

/// Whether another yard's task has the GPU for its own.
bool is_whole_of_neighbour(const Headroom& room, std::size_t gpu);

}  // namespace trainyard::model

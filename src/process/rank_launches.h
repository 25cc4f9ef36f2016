// A launch of several ranks, as the launches of its processes. Pure; any thread.
#pragma once

#include <vector>

#include "model/launch.h"

namespace trainyard::process {

/// The launch of each process, by rank; a launch without ranks of the keeper is returned as it is.
/// Ranks meet at `port`; 0: they have none. The parts made once for the attempt - its result, its
/// memory group - are rank 0's.
std::vector<model::Launch> launches_of(model::Launch launch, int port);

}  // namespace trainyard::process

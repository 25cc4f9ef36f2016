// A launch of several ranks, as the launches of its processes. Pure; any thread.
#pragma once

#include <vector>

#include "model/launch.h"

namespace trainyard::process {

/// What each process of the launch is started with, by rank; of a launch without ranks of the
/// keeper it is the launch itself. Ranks meet at `port`; 0: they have none. What is made once for
/// the attempt - its result, its memory group - is rank 0's.
std::vector<model::Launch> launches_of(model::Launch launch, int port);

}  // namespace trainyard::process

// The later parts of a made-up run: the state that executions before it had reached, and the
// batches that come later.
#pragma once

#include <vector>

#include "model/plan.h"
#include "sim/random.h"
#include "sim/workload.h"

namespace trainyard::sim {

/// As after a resume: some tasks have finished, some have been tried, and some of both kinds have
/// left what a run goes on with.
void give_a_past(model::Plan& plan, Random& random);

/// The plan as it is added to a run: half of the runs grow while they run, by what groups can come
/// later.
std::vector<Addition> cut_into_additions(const model::Plan& plan, Random& random);

}  // namespace trainyard::sim

// Needs in a made-up run: tasks that need others themselves, and tasks that run after failures.
#pragma once

#include <cstdint>

#include "model/plan.h"

namespace trainyard::sim {

/// In a third of the runs. The seed is that of the run: whatever else it makes stays as it is.
void make_some_need_tasks(model::Plan& plan, std::uint64_t seed);

}  // namespace trainyard::sim

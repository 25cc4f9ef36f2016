// For people: where tasks that share GPUs leave them idle for want of CPUs that nobody has asked
// for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "model/plan.h"
#include "model/resources.h"

namespace trainyard::job {

/// Each has a quarter of a CPU at least, and one that trains on a GPU may need less. `tasks` are
/// those of the group. Nothing where the CPUs are enough for as many as the GPUs and the memory.
std::optional<std::string> idle_gpus_note(const std::string& group, std::int64_t tasks,
                                          const model::Request& request,
                                          const model::Policy& policy,
                                          const model::Capacity& capacity);

}  // namespace trainyard::job

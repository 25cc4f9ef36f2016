// The note for people about tasks that share GPUs but leave them idle for want of CPUs, which no
// key requests.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "model/plan.h"
#include "model/resources.h"

namespace trainyard::job {

/// Each task has at least a quarter of a CPU, and a task that trains on a GPU may need less.
/// `tasks` are those of the group. Nothing if the CPUs are enough for as many tasks as the GPUs and
/// the memory.
std::optional<std::string> idle_gpus_note(const std::string& group, std::int64_t tasks,
                                          const model::Request& request,
                                          const model::Policy& policy,
                                          const model::Capacity& capacity);

}  // namespace trainyard::job

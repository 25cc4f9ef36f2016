// The note for people about tasks that want more GPUs than all of their runs may use together.
// Pure.
#pragma once

#include <optional>
#include <string>

#include "model/gpu_limits.h"
#include "model/plan.h"

namespace trainyard::job {

/// Nothing where each task may start at some hour of the week.
std::optional<std::string> gpu_limit_note(const model::Plan& plan, const model::GpuLimits& limits);

}  // namespace trainyard::job

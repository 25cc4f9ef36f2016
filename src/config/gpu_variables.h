// The environment variables by which a task knows which GPUs are its own. Pure.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"

namespace trainyard {

/// CUDA_VISIBLE_DEVICES, or HIP_VISIBLE_DEVICES on AMD's, by UUID; nothing on a machine without
/// GPUs. `gpus` are those of an attempt; empty for one that is only looked at. One of two phases
/// gets its GPU when all is loaded, and sees all of them; one that wants none sees none.
std::vector<std::pair<std::string, std::string>> gpu_variables(const Capacity& capacity,
                                                               const Shape& shape,
                                                               const std::vector<GpuIndex>& gpus);

}  // namespace trainyard

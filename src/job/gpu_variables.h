// The environment variables by which a task knows which GPUs are its own. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"

namespace trainyard::job {

/// What stands for a value in the places where one is only looked at.
constexpr std::string_view kChosenLater = "<chosen when it starts>";

/// CUDA_VISIBLE_DEVICES, or HIP_VISIBLE_DEVICES on AMD's, by UUID; nothing on a machine without
/// GPUs, where `of_machine` is empty. `gpus` are those of an attempt; empty for one that is only
/// looked at. One of two phases gets its GPU when all is loaded, and sees all of them; one that
/// wants none sees none.
std::vector<std::pair<std::string, std::string>> gpu_variables(
    const std::vector<model::Gpu>& of_machine, const model::Shape& shape,
    const std::vector<model::Gpu>& gpus);

/// Why a task of two phases cannot be told its GPU here; nothing when it can. It would have to see
/// all of them, and programs see one MIG slice and nothing beside it.
std::optional<std::string> cannot_see_gpus(const model::Capacity& capacity,
                                           const model::Shape& shape);

}  // namespace trainyard::job

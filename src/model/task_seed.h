// The seed that a task finds in TRAINYARD_SEED. Pure; any thread.
#pragma once

#include <cstdint>
#include <string_view>

namespace trainyard::model {

/// The same in every run, and another one for each task and attempt. 32 bits, which is what
/// generators of random numbers take.
std::uint32_t task_seed(std::string_view group, std::string_view id, std::uint32_t attempt);

}  // namespace trainyard::model

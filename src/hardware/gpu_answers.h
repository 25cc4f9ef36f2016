// The state of the GPUs, as bytes between the process that asks the driver and the process that
// reads it. Pure; any thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hardware/gpu_driver.h"

namespace trainyard::hardware {

std::string pack_list(const GpuList& list);
GpuList unpack_list(std::string_view text);

std::string pack_states(std::span<const GpuState> states);
/// Reads the states of `count` GPUs; see pack_states().
std::vector<GpuState> unpack_states(std::string_view text, std::size_t count);

}  // namespace trainyard::hardware

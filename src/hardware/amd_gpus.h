// AMD's GPUs as the kernel shows them in /sys: no library of AMD's is needed.
#pragma once

#include <memory>
#include <string>

#include "hardware/gpu_driver.h"

namespace trainyard::hardware {

/// Those below `sys` ("/sys"); none is no error. Memory and load are what amdgpu says; processes
/// and their memory what amdkfd says, which are those that compute.
std::unique_ptr<GpuDriver> open_amd(const std::string& sys);

}  // namespace trainyard::hardware

// AMD's GPUs as the kernel shows them in /sys: no library of AMD's is needed.
#pragma once

#include <memory>
#include <string>

#include "io/gpu_driver.h"

namespace trainyard::io {

/// Those below `sys` ("/sys"); none is no error. Memory and load are what amdgpu says; processes
/// and their memory what amdkfd says, which are those that compute.
std::unique_ptr<GpuDriver> open_amd(const std::string& sys);

}  // namespace trainyard::io

// The machine that the program finds itself on: what it may use of it, and who looks at its GPUs.
#pragma once

#include <optional>

#include "hardware/capacity.h"
#include "hardware/gpu_watch.h"

namespace trainyard::hardware {

struct ThisMachine {
  CapacityReading reading;       ///< With its GPUs.
  std::optional<GpuWatch> gpus;  ///< Nothing where there are none.
};

/// Looks now. Forks the process that looks at the GPUs: there should be no other thread yet.
ThisMachine find_this_machine();

}  // namespace trainyard::hardware

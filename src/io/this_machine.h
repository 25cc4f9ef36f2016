// The machine that the program finds itself on: what it may use of it, and who looks at its GPUs.
#pragma once

#include <optional>

#include "io/capacity.h"
#include "io/gpu_watch.h"

namespace trainyard::io {

struct ThisMachine {
  CapacityReading reading;       ///< With its GPUs.
  std::optional<GpuWatch> gpus;  ///< Nothing where there are none.
};

/// Looks now. Forks the process that looks at the GPUs: there should be no other thread yet.
ThisMachine find_this_machine();

}  // namespace trainyard::io

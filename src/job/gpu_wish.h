// What is said of GPUs in a job file or in a program, and what it comes to. Pure.
#pragma once

#include <optional>

#include "base/bytes.h"
#include "base/result.h"
#include "model/resources.h"
#include "settings/setting_value.h"

namespace trainyard::job {

/// Of a task and its group together.
struct GpuWish {
  std::optional<int> gpus;
  settings::MemoryWish memory;  ///< 0: nothing was said.
  std::optional<settings::DeviceWish> device;
  /// The task itself names a device, and only its group says anything else: the device counts.
  bool device_goes_first = false;
};

/// Adds to the request what it comes to. `gpus` alone: that many of its own. `gpu-memory` alone: so
/// much of one. Both: so much on each. A device alone: `usual` of it. Nothing: it trains on the
/// CPUs. An error for what contradicts itself.
Result<void> add_gpus(const GpuWish& wish, Bytes usual, model::Request& request);

}  // namespace trainyard::job

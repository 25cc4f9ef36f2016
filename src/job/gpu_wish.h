// What is said of GPUs in a job file or in a program, and what it comes to. Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/result.h"
#include "model/plan.h"
#include "model/resources.h"
#include "settings/setting_value.h"

namespace trainyard::job {

/// The GPU request of a task: the keys of the task, and those of its group.
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

/// How many tasks that ask for GPUs fit on those of a machine at once.
std::int64_t tasks_on_gpus(const model::Request& request, const model::Policy& policy,
                           const model::Capacity& capacity);

/// The CPUs of a task that asks for GPUs and says nothing about CPUs: those of the machine divided
/// by the tasks that fit on its GPUs at once. At most as large a part of the CPUs as its GPUs are
/// of all, so that one on a single small GPU leaves the others theirs, and at least 0.25. Nothing
/// where it fits on no GPU of the machine.
std::optional<model::Cpus> cpus_beside_gpus(const model::Request& request,
                                            const model::Policy& policy,
                                            const model::Capacity& capacity);

}  // namespace trainyard::job

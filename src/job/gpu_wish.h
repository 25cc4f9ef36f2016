// The GPU request in a job file or a program, and its result. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "model/gpu_limits.h"
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

/// Adds the GPUs to the request. `gpus` alone: that number of whole GPUs. `gpu-memory` alone: that
/// amount on one GPU. Both: the amount on each. A device alone: `usual` on it. Nothing: the task
/// trains on the CPUs. An error for a contradiction.
Result<void> add_gpus(const GpuWish& wish, Bytes usual, model::Request& request);

/// The number of tasks with GPU requests that fit on the GPUs of a machine at once.
std::int64_t tasks_on_gpus(const model::Request& request, const model::Policy& policy,
                           const model::Capacity& capacity);

/// The CPUs of a task that requests GPUs and says nothing about CPUs: those of the machine divided
/// by the tasks that fit on its GPUs at once. The share of the CPUs is at most its share of the
/// GPUs, so that a task on a single small GPU leaves the CPUs of the others free, and at least
/// 0.25. Nothing if it fits on no GPU of the machine.
std::optional<model::Cpus> cpus_beside_gpus(const model::Request& request,
                                            const model::Policy& policy,
                                            const model::Capacity& capacity);

/// The note for people about tasks that want more GPUs than all of their runs may use together.
/// Nothing where each task may start at some hour of the week.
std::optional<std::string> gpu_limit_note(const model::Plan& plan, const model::GpuLimits& limits);

}  // namespace trainyard::job

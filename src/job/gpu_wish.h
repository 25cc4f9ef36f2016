// The GPU request in a job file or a program, its result, and its mistakes. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "job/job_spec.h"
#include "job/task_keys.h"
#include "model/gpu_limits.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/terms.h"
#include "settings/setting_value.h"
#include "text/yaml_reader.h"

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

/// Finds GPU keys of a job file that have no effect: keys for sharing a GPU where no GPU is
/// requested or the requested GPUs are not shared; and an amount of GPU memory without a GPU.
///
/// A key counts for all tasks that it is written for: a key that a group hands down, or that several
/// groups share by an anchor, is right if it has a meaning for one of them. Pure.
class GpuKeys {
 public:
  struct Mistake {
    text::Place place;
    const GroupSpec* group = nullptr;
    std::string message;
  };

  /// Takes the request of one combination of a task, and the terms that resulted. The group must
  /// outlive this.
  void see(const GroupSpec& group, const TaskSpec& task, const Asked& asked,
           const model::Terms& terms);

  /// The mistakes in the tasks that were passed to see(), in the order of their places.
  [[nodiscard]] std::vector<Mistake> mistakes() const;

 private:
  struct Seen {
    const GroupSpec* group = nullptr;  ///< The first group that has the key.
    bool of_use = false;
    bool on_gpu = false;  ///< A task that it is written for has a GPU.
  };
  using Key = std::tuple<int, int, TaskKey>;  ///< Line, column.

  std::map<Key, Seen> seen_;
};

}  // namespace trainyard::job

// The requests of retries beyond the job file: more memory, of the host or of GPUs, and GPUs other
// than those on which the task was lost. For the files of this folder alone.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/terms.h"
#include "schedule/another_try.h"
#include "schedule/machine_book.h"
#include "schedule/running.h"

namespace trainyard::schedule {

/// The request of a task that has run out of the memory of its GPUs, for each of them.
struct GrownGpu {
  Bytes each;            ///< 0: the task is alone on its GPUs.
  bool largest = false;  ///< It is alone on the largest GPUs of all.
  Bytes most;            ///< The largest request so far that was not for whole GPUs.
};

/// A task is here from its first larger request, or its first lost GPU, until it has its verdict.
class RetryRequests {
 public:
  /// Raises the requests of a task to those that an earlier execution had reached, or a user asks
  /// for, as far as that is more than its terms say. Returns whether any of it is.
  bool raise(model::TaskIndex task, const model::Terms& terms, const model::Reached& to);
  void grow(model::TaskIndex task, const GrownGpu& grown) { tasks_[task].gpu = grown; }
  /// The task was lost on this GPU.
  void avoid(model::TaskIndex task, model::GpuPlace gpu);
  void forget(model::TaskIndex task) { tasks_.erase(task); }

  /// The host memory to which a task was raised; it is returned once, for the task's next wait.
  std::optional<Bytes> take_memory(model::TaskIndex task);
  [[nodiscard]] std::optional<Bytes> memory_of(model::TaskIndex task) const {
    return of(task).memory;
  }
  /// All zero for a task that has not run out of the memory of its GPUs.
  [[nodiscard]] GrownGpu gpu_of(model::TaskIndex task) const {
    return of(task).gpu.value_or(GrownGpu{});
  }
  /// Changes the part of a request that is about GPUs.
  void apply(model::TaskIndex task, model::Request& request) const;

  /// The request of a task after this setback: at least its measured need, and half as much again
  /// if the fault was its own. The last try, and a task that could have no more than it had
  /// (`most`) next to others, is alone on its GPUs. A hard limit does not grow.
  [[nodiscard]] GrownGpu gpu_after(const Running& running, Setback setback, const AnotherTry& next,
                                   Bytes most, bool has_hard_limit) const;

 private:
  struct Requests {
    std::optional<Bytes> memory;
    std::optional<GrownGpu> gpu;
    std::vector<model::GpuPlace> lost_on;  ///< Each of them once.
  };
  [[nodiscard]] Requests of(model::TaskIndex task) const;

  std::map<model::TaskIndex, Requests> tasks_;
};

/// Makes a task avoid the GPUs that are a last resort, too, if one of these machines has others that
/// it could get once no task of this run is on them. If none has, the task avoids only those on
/// which it was lost, or else no GPU. `written` is the request of the job file. Searches the
/// machines for room only if there is a GPU to avoid.
void avoid_if_others_fit(model::Request& request, const model::Request& written,
                         std::span<const MachineBook> machines, const model::Policy& policy);

}  // namespace trainyard::schedule

// The tasks that share a GPU, as far as their terms limit that: their number, their use of it
// together, and the number of tasks that each accepts. A small value that is copied with its GPU.
#pragma once

#include <array>
#include <cstdint>

#include "model/resources.h"

namespace trainyard::schedule {

class Sharers {
 public:
  void add(const model::GpuSharing& task);
  /// The task must have been added.
  void remove(const model::GpuSharing& task);

  /// Whether another task may be there: no task is crowded more than it may be, and together they
  /// use no more than `utilization_max`, in thousandths. A task that is alone may use any part.
  [[nodiscard]] bool admit(const model::GpuSharing& task, int utilization_max) const;

  [[nodiscard]] int tasks() const { return tasks_; }
  /// Sum of the `gpu-utilization` of the tasks that have the key, in thousandths.
  [[nodiscard]] int utilization() const { return utilization_; }
  /// The smallest number of tasks that one of them lets be there; 0: any number.
  [[nodiscard]] int tasks_max() const;

 private:
  int tasks_ = 0;
  int utilization_ = 0;
  /// Number of tasks that set each maximum; 0 is not counted.
  std::array<std::uint16_t, model::kMaxPerGpuMost + 1> say_{};
};

}  // namespace trainyard::schedule

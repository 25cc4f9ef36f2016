// The tasks that share a GPU, as far as it is written who may: how many they are, what they use of
// it together, and how many each of them puts up with. A small value that is copied with its GPU.
#pragma once

#include <array>
#include <cstdint>

#include "model/resources.h"

namespace trainyard::schedule {

class Sharers {
 public:
  void add(const model::GpuSharing& task);
  /// One that was added.
  void remove(const model::GpuSharing& task);

  /// Whether another one may be there: no one is crowded more than it may be, and together they use
  /// no more than `utilization_max`, in thousandths. One that is alone may use any part.
  [[nodiscard]] bool admit(const model::GpuSharing& task, int utilization_max) const;

  [[nodiscard]] int tasks() const { return tasks_; }
  /// Sum of the `gpu-utilization` of the tasks that have the key, in thousandths.
  [[nodiscard]] int utilization() const { return utilization_; }
  /// The smallest number of tasks that one of them lets be there; 0: any number.
  [[nodiscard]] int tasks_max() const;

 private:
  int tasks_ = 0;
  int utilization_ = 0;
  /// How many of them say which number; 0 is not counted.
  std::array<std::uint16_t, model::kMaxPerGpuMost + 1> say_{};
};

}  // namespace trainyard::schedule

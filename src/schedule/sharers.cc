#include "schedule/sharers.h"

#include <algorithm>
#include <cstddef>

#include "base/check.h"

namespace trainyard::schedule {

void Sharers::add(const model::GpuSharing& task) {
  ++tasks_;
  utilization_ += task.utilization;
  if (task.max_per_gpu > 0) ++say_.at(static_cast<std::size_t>(task.max_per_gpu));
}

void Sharers::remove(const model::GpuSharing& task) {
  check(tasks_ > 0, "only one that was added is removed");
  --tasks_;
  utilization_ -= task.utilization;
  if (task.max_per_gpu > 0) --say_.at(static_cast<std::size_t>(task.max_per_gpu));
}

bool Sharers::admit(const model::GpuSharing& task, int utilization_max) const {
  const auto crowds = [then = tasks_ + 1](int most) { return most > 0 && then > most; };
  if (crowds(task.max_per_gpu) || crowds(tasks_max())) return false;
  return utilization_ == 0 || utilization_ + task.utilization <= utilization_max;
}

int Sharers::tasks_max() const {
  const auto* const first = std::ranges::find_if(say_, [](auto count) { return count > 0; });
  return first == say_.end() ? 0 : static_cast<int>(first - say_.begin());
}

}  // namespace trainyard::schedule

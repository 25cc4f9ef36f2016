#include "report/forecast.h"

#include <algorithm>

namespace trainyard::report {

void Forecast::finished(std::uint32_t group, Duration took) {
  groups_.at(group).sum += took;
  ++groups_.at(group).count;
}

void Forecast::ended(std::uint32_t group) { --groups_.at(group).left; }

void Forecast::begins_anew(std::uint32_t group) {
  if (group < groups_.size()) ++groups_[group].left;
}

void Forecast::at_once(int tasks) {
  // The number falls when nothing is left to start, which says nothing about the machine.
  int left = 0;
  for (const Group& group : groups_) left += group.left;
  if (tasks > 0 && (left > tasks || tasks > at_once_)) at_once_ = tasks;
}

std::optional<Remaining> Forecast::remaining(std::span<const RunningTask> running) const {
  std::vector<int> not_started;
  not_started.reserve(groups_.size());
  for (const Group& group : groups_) not_started.push_back(group.left);

  Duration work{0};
  Duration longest{0};
  for (const RunningTask& task : running) {
    const Group& group = groups_.at(task.group);
    --not_started.at(task.group);
    if (group.count == 0) continue;
    const Duration left = std::max(Duration{0}, (group.sum / group.count) - task.so_far);
    work += left;
    longest = std::max(longest, left);
  }
  Remaining remaining;
  bool known = false;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const Group& group = groups_[i];
    if (group.left <= 0) continue;
    if (group.count == 0) {
      remaining.at_least = true;
      continue;
    }
    known = true;
    work += group.sum / group.count * std::max(0, not_started[i]);
  }
  if (!known || at_once_ == 0) return std::nullopt;
  remaining.time = std::max(longest, work / at_once_);
  return remaining;
}

}  // namespace trainyard::report

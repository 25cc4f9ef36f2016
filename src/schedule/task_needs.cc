#include "schedule/task_needs.h"

#include <algorithm>
#include <cstddef>
#include <tuple>

#include "base/check.h"

namespace trainyard::schedule {

bool is_well(model::Verdict verdict) {
  switch (verdict) {
    case model::Verdict::Finished:
    case model::Verdict::NotSelected:
    case model::Verdict::NotNeeded:
      return true;
    case model::Verdict::None:
    case model::Verdict::Failed:
    case model::Verdict::Skipped:
    case model::Verdict::Stopped:
      break;
  }
  return false;
}

void TaskNeeds::add(std::span<const model::TaskNeed> needs, const model::PlanStart& start,
                    const TaskTable& tasks) {
  const std::size_t before = reverse_.size();
  for (model::TaskNeed need : needs) {
    need.task.value += start.task;
    need.needed.value += start.task;
    check(needs_.empty() || needs_.back() < need, "needs come in the order of their tasks");
    needs_.push_back(need);
    reverse_.push_back(need);
    if (counts_.empty() || counts_.back().task != need.task) counts_.push_back({.task = need.task});
    const model::Verdict verdict = tasks[need.needed].verdict;
    if (verdict == model::Verdict::None) {
      ++counts_.back().counts.open;
    } else if (!is_well(verdict)) {
      ++counts_.back().counts.badly;
    }
  }
  std::ranges::sort(std::span(reverse_).subspan(before), {},
                    [](const model::TaskNeed& need) { return std::tuple(need.needed, need.task); });
}

TaskNeeds::Needing* TaskNeeds::find(model::TaskIndex task) {
  const auto found = std::ranges::lower_bound(counts_, task, {}, &Needing::task);
  return found == counts_.end() || found->task != task ? nullptr : &*found;
}

TaskNeeds::Counts TaskNeeds::of(model::TaskIndex task) const {
  const auto found = std::ranges::lower_bound(counts_, task, {}, &Needing::task);
  return found == counts_.end() || found->task != task ? Counts{} : found->counts;
}

std::span<const model::TaskNeed> TaskNeeds::needs_of(model::TaskIndex task) const {
  return std::ranges::equal_range(needs_, task, {}, &model::TaskNeed::task);
}

std::span<const model::TaskNeed> TaskNeeds::needed_by(model::TaskIndex task) const {
  return std::ranges::equal_range(reverse_, task, {}, &model::TaskNeed::needed);
}

void TaskNeeds::concluded(model::TaskIndex task, model::Verdict verdict) {
  if (!needed_by(task).empty()) concluded_.push_back(task);
  for (const model::TaskNeed& need : needed_by(task)) {
    Counts& counts = find(need.task)->counts;
    check(counts.open > 0, "what a task needs ends once");
    --counts.open;
    if (!is_well(verdict)) ++counts.badly;
  }
}

std::optional<model::TaskIndex> TaskNeeds::next_concluded() {
  if (concluded_.empty()) return std::nullopt;
  const model::TaskIndex task = concluded_.front();
  concluded_.pop_front();
  return task;
}

void TaskNeeds::reopened(model::TaskIndex task, model::Verdict before) {
  for (const model::TaskNeed& need : needed_by(task)) {
    Counts& counts = find(need.task)->counts;
    ++counts.open;
    if (!is_well(before)) --counts.badly;
  }
}

}  // namespace trainyard::schedule

#include "model/plan.h"

#include <utility>

namespace trainyard::model {

PlanStart append(Plan& whole, const Plan& next) {
  const PlanStart start{.group = static_cast<std::uint32_t>(whole.groups.size()),
                        .shape = static_cast<std::uint32_t>(whole.shapes.size()),
                        .task = static_cast<std::uint32_t>(whole.tasks.size())};
  whole.groups.reserve(whole.groups.size() + next.groups.size());
  for (PlannedGroup group : next.groups) {
    for (std::vector<GroupIndex>* const needs : {&group.needs, &group.needs_by_task}) {
      for (GroupIndex& needed : *needs) needed.value += start.group;
    }
    group.needs.insert(group.needs.end(), group.needs_earlier.begin(), group.needs_earlier.end());
    group.needs_earlier.clear();
    whole.groups.push_back(std::move(group));
  }
  whole.shapes.reserve(whole.shapes.size() + next.shapes.size());
  for (Shape shape : next.shapes) {
    shape.group.value += start.group;
    whole.shapes.push_back(shape);
  }
  whole.tasks.reserve(whole.tasks.size() + next.tasks.size());
  for (PlannedTask task : next.tasks) {
    task.shape.value += start.shape;
    whole.tasks.push_back(task);
  }
  for (TaskNeed need : next.task_needs) {
    need.task.value += start.task;
    need.needed.value += start.task;
    whole.task_needs.push_back(need);
  }
  const auto add_of_tasks = [&start](auto& all, auto added) {
    for (auto& each : added) {
      each.task.value += start.task;
      all.push_back(std::move(each));
    }
  };
  add_of_tasks(whole.said, next.said);
  add_of_tasks(whole.reached, next.reached);
  add_of_tasks(whole.taken, next.taken);
  add_of_tasks(whole.failed, next.failed);
  for (SharingMeasured measured : next.sharing) {
    measured.shape.value += start.shape;
    whole.sharing.push_back(measured);
  }
  return start;
}

}  // namespace trainyard::model

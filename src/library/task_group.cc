#include "trainyard/task_group.h"

#include <algorithm>

#include "base/check.h"
#include "trainyard/status.h"
#include "trainyard/task_outcome.h"

namespace trainyard {

TaskGroup::TaskGroup(std::string name, TaskOptions defaults, GroupOptions options)
    : name_(std::move(name)), defaults_(std::move(defaults)), options_(options) {}

void TaskGroup::add(std::unique_ptr<Task> task) {
  check(task != nullptr, "a task that is added to a group");
  tasks_.push_back(std::move(task));
}

Task* TaskGroup::find(std::string_view id) const {
  const auto found = std::ranges::find_if(tasks_, [id](const auto& it) { return it->id() == id; });
  return found == tasks_.end() ? nullptr : found->get();
}

TaskGroup::Numbers TaskGroup::numbers() const {
  Numbers numbers;
  for (const auto& task : tasks_) {
    switch (task->outcome()) {
      case TaskOutcome::None:
        if (task->status() == Status::Training || task->status() == Status::Finished) {
          ++numbers.training;
        } else if (task->is_alive()) {
          ++numbers.waiting;
        }
        break;
      case TaskOutcome::Finished:
        ++numbers.finished;
        break;
      case TaskOutcome::Skipped:
        ++numbers.skipped;
        break;
      case TaskOutcome::Stopped:
        ++numbers.stopped;
        break;
      default:
        ++numbers.failed;
        break;
    }
  }
  numbers.processes = numbers.waiting + numbers.training;
  return numbers;
}

bool TaskGroup::finished() const {
  return std::ranges::none_of(
      tasks_, [](const auto& task) { return task->outcome() == TaskOutcome::None; });
}

}  // namespace trainyard

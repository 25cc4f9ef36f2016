#include "trainyard/task_group.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "trainyard/status.h"
#include "trainyard/task.h"

namespace trainyard {

TaskGroup::TaskGroup(std::string name, GroupOptions options)
    : name_(std::move(name)), options_(std::move(options)) {}

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
    switch (task->status()) {
      case Status::Available:
      case Status::Loading:
      case Status::Waiting:
        ++numbers.waiting;
        break;
      case Status::Training:
      case Status::Finished:
        ++numbers.training;
        break;
      case Status::Exited:
        ++numbers.finished;
        break;
      case Status::Exception:
        ++numbers.failed;
        break;
      default:
        break;
    }
  }
  numbers.processes = numbers.waiting + numbers.training;
  return numbers;
}

bool TaskGroup::finished() const {
  const Numbers now = numbers();
  return now.finished + now.failed == std::ssize(tasks_);
}

}  // namespace trainyard

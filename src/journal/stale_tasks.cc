#include "journal/stale_tasks.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "model/ids.h"
#include "model/plan.h"

namespace trainyard::journal {
namespace {

class StaleTasks {
 public:
  StaleTasks(const model::Plan& plan, const std::vector<bool>& begins_anew)
      : plan_(plan), moved_(begins_anew), groups_moved_(plan.groups.size()) {
    for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
      if (moved_[i]) groups_moved_[group_of(i)] = true;
    }
    while (pass()) continue;
  }

  /// Those that begin anew, and those that are behind them.
  [[nodiscard]] const std::vector<bool>& moved() const { return moved_; }

 private:
  [[nodiscard]] std::size_t group_of(std::size_t task) const {
    return plan_.shapes[plan_.tasks[task].shape.value].group.value;
  }

  void move(std::size_t task) {
    moved_[task] = true;
    groups_moved_[group_of(task)] = true;
  }

  bool pass() {
    bool any = false;
    auto need = plan_.task_needs.begin();
    for (std::size_t task = 0; task < plan_.tasks.size(); ++task) {
      bool is_behind =
          std::ranges::any_of(plan_.groups[group_of(task)].needs, [this](model::GroupIndex needed) {
            return needed.value < groups_moved_.size() && groups_moved_[needed.value];
          });
      for (; need != plan_.task_needs.end() && need->task.value == task; ++need) {
        is_behind = is_behind || moved_[need->needed.value];
      }
      if (!is_behind || moved_[task]) continue;
      move(task);
      any = true;
    }
    return any;
  }

  const model::Plan& plan_;
  std::vector<bool> moved_;
  std::vector<bool> groups_moved_;
};

}  // namespace

std::vector<bool> find_stale(const model::Plan& plan, const std::vector<bool>& begins_anew) {
  std::vector<bool> stale = StaleTasks(plan, begins_anew).moved();
  for (std::size_t i = 0; i < stale.size(); ++i) stale[i] = stale[i] && !begins_anew[i];
  return stale;
}

void StaleGroups::add(model::GroupIndex group, Of of) {
  Counts& counts = counts_[group];
  ++(of.runs_again ? counts.again : counts.kept);
}

std::vector<std::string> StaleGroups::lines(const model::Plan& plan) const {
  std::vector<std::string> lines;
  for (const auto& [group, counts] : counts_) {
    const auto tell = [&lines, &name = plan.groups[group.value].name](int tasks, const char* what) {
      if (tasks == 0) return;
      lines.push_back(
          fmt::format("group '{}': {} had finished before what {}, which begins anew; {}", name,
                      tasks == 1 ? "1 task" : fmt::format("{} tasks", tasks),
                      tasks == 1 ? "it needs" : "they need", what));
    };
    tell(counts.again, "run again");
    tell(counts.kept, "kept as it is (--rerun-changed runs such again)");
  }
  return lines;
}

}  // namespace trainyard::journal

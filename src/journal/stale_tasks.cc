#include "journal/stale_tasks.h"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

namespace trainyard::journal {
namespace {

class StaleTasks {
 public:
  StaleTasks(const model::Plan& plan, const std::vector<bool>& begins_anew,
             const std::vector<LastRun>& last_runs)
      : plan_(plan),
        last_runs_(last_runs),
        moved_(begins_anew),
        groups_moved_(plan.groups.size()),
        groups_ran_(plan.groups.size()) {
    for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
      if (moved_[i]) groups_moved_[group_of(i)] = true;
      std::optional<Instant>& ran = groups_ran_[group_of(i)];
      ran = std::max(ran, last_of(i));
    }
    while (pass()) continue;
  }

  /// The tasks that start over, and those behind them.
  [[nodiscard]] const std::vector<bool>& moved() const { return moved_; }

 private:
  [[nodiscard]] std::size_t group_of(std::size_t task) const {
    return plan_.shapes[plan_.tasks[task].shape.value].group.value;
  }

  /// The last time when a task was seen to start or to end.
  [[nodiscard]] std::optional<Instant> last_of(std::size_t task) const {
    return std::max(last_runs_[task].started, last_runs_[task].ended);
  }

  /// True if a task ran before this time.
  [[nodiscard]] bool is_older(std::size_t task, std::optional<Instant> last) const {
    const std::optional<Instant>& started = last_runs_[task].started;
    return last && started && *started < *last;
  }

  void move(std::size_t task) {
    moved_[task] = true;
    groups_moved_[group_of(task)] = true;
  }

  bool pass() {
    bool any = false;
    auto need = plan_.task_needs.begin();
    for (std::size_t task = 0; task < plan_.tasks.size(); ++task) {
      const auto& needs = plan_.groups[group_of(task)].needs;
      bool is_behind = std::ranges::any_of(needs, [this, task](model::GroupIndex needed) {
        if (needed.value >= groups_moved_.size()) return false;
        return groups_moved_[needed.value] || is_older(task, groups_ran_[needed.value]);
      });
      for (; need != plan_.task_needs.end() && need->task.value == task; ++need) {
        const std::size_t needed = need->needed.value;
        is_behind = is_behind || moved_[needed] || is_older(task, last_of(needed));
      }
      if (!is_behind || moved_[task]) continue;
      move(task);
      any = true;
    }
    return any;
  }

  const model::Plan& plan_;
  const std::vector<LastRun>& last_runs_;
  std::vector<bool> moved_;
  std::vector<bool> groups_moved_;
  std::vector<std::optional<Instant>> groups_ran_;  ///< The last task of each.
};

}  // namespace

LastRun last_run(model::Verdict verdict, std::optional<Instant> started,
                 std::optional<Instant> ended) {
  if (verdict == model::Verdict::NotNeeded) return {};
  return {.started = started, .ended = ended};
}

std::vector<bool> find_stale(const model::Plan& plan, const std::vector<bool>& begins_anew,
                             const std::vector<LastRun>& last_runs) {
  std::vector<bool> stale = StaleTasks(plan, begins_anew, last_runs).moved();
  for (std::size_t i = 0; i < stale.size(); ++i) stale[i] = stale[i] && !begins_anew[i];
  return stale;
}

void StaleGroups::add(model::GroupIndex group, Of of) {
  Counts& counts = counts_[group];
  ++(of.runs_again ? counts.again : counts.kept);
}

std::vector<std::string> StaleGroups::lines(const model::Plan& plan, std::string_view cure) const {
  std::vector<std::string> lines;
  for (const auto& [group, counts] : counts_) {
    const auto tell = [&lines, &name = plan.groups[group.value].name](int tasks,
                                                                      const std::string& what) {
      if (tasks == 0) return;
      lines.push_back(
          fmt::format("group '{}': {} had finished before a task that {} was run again; {}", name,
                      tasks == 1 ? "1 task" : fmt::format("{} tasks", tasks),
                      tasks == 1 ? "it needs" : "they need", what));
    };
    tell(counts.again, "run again");
    tell(counts.kept, fmt::format("kept as it is ({})", cure));
  }
  return lines;
}

}  // namespace trainyard::journal

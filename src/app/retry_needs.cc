#include "app/retry_needs.h"

#include <algorithm>
#include <cstddef>
#include <expected>
#include <iterator>
#include <string>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/task_selection.h"
#include "base/list_text.h"
#include "model/status.h"
#include "schedule/ending.h"
#include "text/shell_quote.h"

namespace trainyard::app {
namespace {

bool needs_group(const journal::GroupRow& group, const journal::GroupRow& other) {
  return other.batch == group.batch &&
         std::ranges::find(group.needs, other.name_in_file) != group.needs.end();
}

/// The same where its tasks may need only some of the other group.
bool needs_some_of(const journal::GroupRow& group, const journal::GroupRow& other) {
  return needs_group(group, other) ||
         (other.batch == group.batch &&
          std::ranges::find(group.needs_tasks, other.name_in_file) != group.needs_tasks.end());
}

std::set<model::TaskIndex> task_indices(const std::vector<journal::TaskRow>& tasks) {
  std::set<model::TaskIndex> indices;
  for (const journal::TaskRow& task : tasks) indices.insert(task.index);
  return indices;
}

}  // namespace

/// The tasks that are retried with some, found step by step.
class RetryNeeds::Cascade {
 public:
  Cascade(const RetryNeeds& all, const std::vector<journal::TaskRow>& tasks) : all_(all) {
    for (const journal::TaskRow& task : tasks) {
      chosen_.insert(task.index);
      touched_.insert(task.group);
      if (task.standing.verdict == model::Verdict::Failed) failed_.insert(task.group);
    }
    find_stuck();
  }

  std::set<model::TaskIndex> find() && {
    for (const auto& [index, row] : all_.bad_) {
      const bool is_with_its_group =
          failed_.contains(row.group) && schedule::is_skipped_with_its_group(row.message);
      if (is_with_its_group) take(index);
    }
    // Groups are in the order of their file, and one may need a later one.
    for (bool more = true; more;) {
      more = false;
      for (const journal::TaskNeedRow& need : all_.needs_) {
        if (chosen_.contains(need.needed)) more = take(need.task) || more;
        if (chosen_.contains(need.task)) more = take_needed(need.needed) || more;
      }
      for (const journal::GroupRow& group : all_.groups_) {
        if (is_behind(group)) more = take_all_of(group.index) || more;
        if (touched_.contains(group.index)) more = take_needed_by(group) || more;
      }
    }
    return std::move(chosen_);
  }

 private:
  [[nodiscard]] bool is_behind(const journal::GroupRow& group) const {
    return std::ranges::any_of(all_.groups_, [&](const journal::GroupRow& other) {
      return touched_.contains(other.index) && needs_group(group, other);
    });
  }
  bool take_all_of(model::GroupIndex group) {
    bool some = false;
    for (const auto* const rows : {&all_.bad_, &all_.finished_}) {
      for (const auto& [index, row] : *rows) {
        if (row.group == group) some = take(index) || some;
      }
    }
    return some;
  }
  /// A skipped task that a chosen one needs, unless it would be skipped again.
  bool take_needed(model::TaskIndex task) {
    return all_.bad_.contains(task) && !stuck_.contains(task) && take(task);
  }
  bool take_needed_by(const journal::GroupRow& group) {
    bool some = false;
    for (const journal::GroupRow& other : all_.groups_) {
      if (!needs_group(group, other)) continue;
      for (const auto& [index, row] : all_.bad_) {
        if (row.group == other.index) some = take_needed(index) || some;
      }
    }
    return some;
  }
  bool take(model::TaskIndex task) {
    const journal::TaskRow* const row = all_.row_behind(task);
    if (row == nullptr || !chosen_.insert(task).second) return false;
    touched_.insert(row->group);
    return true;
  }

  /// A failed or stopped task that is not chosen stays as it is, and tasks that need it are skipped
  /// again.
  void find_stuck() {
    std::set<model::GroupIndex> groups;
    const auto stick = [this, &groups](model::TaskIndex index, const journal::TaskRow& row) {
      if (chosen_.contains(index) || !stuck_.insert(index).second) return false;
      groups.insert(row.group);
      return true;
    };
    for (const auto& [index, row] : all_.bad_) {
      if (row.standing.verdict != model::Verdict::Skipped) stick(index, row);
    }
    for (const auto& [index, row] : all_.bad_) {
      const bool is_with_its_group =
          groups.contains(row.group) && schedule::is_skipped_with_its_group(row.message);
      if (is_with_its_group) stick(index, row);
    }
    for (bool more = true; more;) {
      more = false;
      for (const journal::TaskNeedRow& need : all_.needs_) {
        const auto bad = all_.bad_.find(need.task);
        const bool is_stuck = bad != all_.bad_.end() && stuck_.contains(need.needed);
        if (is_stuck) more = stick(bad->first, bad->second) || more;
      }
      for (const journal::GroupRow& group : all_.groups_) {
        const bool is_stuck =
            std::ranges::any_of(all_.groups_, [&](const journal::GroupRow& other) {
              return groups.contains(other.index) && needs_group(group, other);
            });
        if (!is_stuck) continue;
        for (const auto& [index, row] : all_.bad_) {
          if (row.group == group.index) more = stick(index, row) || more;
        }
      }
    }
  }

  const RetryNeeds& all_;
  std::set<model::TaskIndex> chosen_;
  std::set<model::TaskIndex> stuck_;     ///< Not chosen, and would not run.
  std::set<model::GroupIndex> touched_;  ///< The groups with a chosen task.
  std::set<model::GroupIndex> failed_;   ///< The groups with a chosen task that has failed.
};

RetryNeeds::RetryNeeds(std::vector<journal::GroupRow> groups,
                       std::vector<journal::TaskNeedRow> needs, std::vector<journal::TaskRow> tasks)
    : groups_(std::move(groups)), needs_(std::move(needs)) {
  std::set<model::GroupIndex> behind;
  for (const journal::GroupRow& group : groups_) {
    if (!group.needs.empty() || !group.needs_tasks.empty()) behind.insert(group.index);
  }
  for (journal::TaskRow& row : tasks) {
    const model::Verdict verdict = row.standing.verdict;
    const bool is_bad = verdict == model::Verdict::Failed || verdict == model::Verdict::Skipped ||
                        verdict == model::Verdict::Stopped;
    const bool is_finished_behind = is_finished(row) && behind.contains(row.group);
    auto* const rows = is_bad                                   ? &bad_
                       : verdict == model::Verdict::NotSelected ? &not_selected_
                       : is_finished_behind                     ? &finished_
                                                                : nullptr;
    const model::TaskIndex index = row.index;
    if (rows != nullptr) rows->emplace(index, std::move(row));
  }
}

void RetryNeeds::add_cascade(std::vector<journal::TaskRow>& tasks) const {
  const std::set<model::TaskIndex> before = task_indices(tasks);
  for (const model::TaskIndex index : Cascade(*this, tasks).find()) {
    if (!before.contains(index)) tasks.push_back(*row_behind(index));
  }
}

void RetryNeeds::put_needed_first(std::vector<journal::TaskRow>& tasks) const {
  std::map<model::GroupIndex, std::size_t> places;
  const auto has_its_needs = [&](const journal::GroupRow& group) {
    return std::ranges::none_of(groups_, [&](const journal::GroupRow& other) {
      return other.index != group.index && !places.contains(other.index) &&
             needs_some_of(group, other);
    });
  };
  for (bool more = true; more;) {
    more = false;
    for (const journal::GroupRow& group : groups_) {
      if (places.contains(group.index) || !has_its_needs(group)) continue;
      places.emplace(group.index, places.size());
      more = true;
    }
  }
  // A round of a repeat needs earlier ones.
  std::ranges::sort(tasks, {}, [&places](const journal::TaskRow& task) {
    return std::tuple(task.batch, places[task.group], task.index);
  });
}

/// A task that is retried with the tasks it needs, or nothing: it was skipped, or has finished.
const journal::TaskRow* RetryNeeds::row_behind(model::TaskIndex task) const {
  const auto bad = bad_.find(task);
  if (bad != bad_.end()) {
    return bad->second.standing.verdict == model::Verdict::Skipped ? &bad->second : nullptr;
  }
  const auto finished = finished_.find(task);
  return finished == finished_.end() ? nullptr : &finished->second;
}

std::vector<journal::TaskRow> RetryNeeds::out_of_date() const {
  std::vector<journal::TaskRow> rows;
  for (const auto& [index, row] : finished_) {
    if (row.out_of_date) rows.push_back(row);
  }
  return rows;
}

/// The tasks that a task needs, and these need, and that the run began without. If a task needs a
/// whole group, some task of that group must have run: a run may have been begun with a part of a
/// group. Of a group without any, these are the chosen tasks, or all if none is chosen.
std::set<model::TaskIndex> RetryNeeds::not_selected_behind(
    const journal::TaskRow& task, const std::set<model::TaskIndex>& chosen) const {
  std::set<model::TaskIndex> found{task.index};
  std::set<model::GroupIndex> touched{task.group};
  const auto take = [&](const journal::TaskRow& row) {
    touched.insert(row.group);
    return found.insert(row.index).second;
  };
  const auto take_group = [&](const journal::GroupRow& group) {
    std::vector<const journal::TaskRow*> all;
    std::vector<const journal::TaskRow*> some;
    for (const auto& [index, row] : not_selected_) {
      if (row.group != group.index) continue;
      all.push_back(&row);
      if (chosen.contains(index)) some.push_back(&row);
    }
    bool more = false;
    if (std::ssize(all) != group.tasks) return more;
    for (const journal::TaskRow* const row : some.empty() ? all : some) more = take(*row) || more;
    return more;
  };
  for (bool more = true; more;) {
    more = false;
    for (const journal::TaskNeedRow& need : needs_) {
      const auto needed = not_selected_.find(need.needed);
      const bool is_behind = found.contains(need.task) && needed != not_selected_.end();
      if (is_behind) more = take(needed->second) || more;
    }
    for (const journal::GroupRow& group : groups_) {
      const bool is_needed = std::ranges::any_of(groups_, [&](const journal::GroupRow& other) {
        return touched.contains(other.index) && needs_group(other, group);
      });
      if (is_needed) more = take_group(group) || more;
    }
  }
  found.erase(task.index);
  return found;
}

Result<void> RetryNeeds::check_not_selected(const journal::TaskRow& task,
                                            const std::set<model::TaskIndex>& chosen,
                                            std::string_view run) const {
  const std::set<model::TaskIndex> needed = not_selected_behind(task, chosen);
  if (std::ranges::includes(chosen, needed)) return {};
  std::vector<std::string> missing;
  std::vector<std::string> words;
  for (const journal::GroupRow& group : groups_) {
    std::vector<std::string> names;
    std::vector<std::string> not_chosen;
    for (const model::TaskIndex index : needed) {
      const journal::TaskRow& row = not_selected_.at(index);
      if (row.group != group.index) continue;
      names.push_back(text::shell_word(shown_name(row)));
      if (!chosen.contains(index)) not_chosen.push_back(fmt::format("'{}'", shown_name(row)));
    }
    if (names.empty()) continue;
    if (std::ssize(names) == group.tasks) {
      names = {text::shell_word(group.name)};
      if (!not_chosen.empty()) not_chosen = {fmt::format("group '{}'", group.name)};
    }
    std::ranges::move(names, std::back_inserter(words));
    std::ranges::move(not_chosen, std::back_inserter(missing));
  }
  return std::unexpected(Error{fmt::format(
      "{} needs {}, which {} not selected either; to run {}, type: trainyard retry {} {} {}",
      shown_name(task), list_text(missing), missing.size() == 1 ? "was" : "were",
      words.size() == 1 ? "both" : "all", run, fmt::join(words, " "),
      text::shell_word(shown_name(task)))});
}

Result<void> RetryNeeds::check(const std::vector<journal::TaskRow>& tasks,
                               std::string_view run) const {
  const std::set<model::TaskIndex> chosen = task_indices(tasks);
  std::set<model::GroupIndex> failed;  // Groups that will not have finished.
  for (const auto& [index, row] : bad_) {
    if (!chosen.contains(index)) failed.insert(row.group);
  }
  const auto refuse = [run](const journal::TaskRow& task, const std::string& kind,
                            const std::string& needed) {
    return std::unexpected(Error{
        fmt::format("{} would only be skipped again: it needs {}'{}'; to retry that and all tasks "
                    "that were skipped because of it, type: trainyard retry {} {} --cascade",
                    shown_name(task), kind, needed, run, text::shell_word(needed))});
  };
  for (const journal::TaskRow& task : tasks) {
    if (task.standing.verdict == model::Verdict::NotSelected) {
      if (Result<void> all = check_not_selected(task, chosen, run); !all) return all;
    }
    if (task.standing.verdict != model::Verdict::Skipped) continue;
    for (const journal::TaskNeedRow& need : needs_) {
      if (need.task != task.index || chosen.contains(need.needed)) continue;
      const auto bad = bad_.find(need.needed);
      if (bad != bad_.end()) return refuse(task, "", shown_name(bad->second));
    }
    const auto own = std::ranges::find(groups_, task.group, &journal::GroupRow::index);
    for (const journal::GroupRow& other : groups_) {
      if (own == groups_.end() || !failed.contains(other.index)) continue;
      if (needs_group(*own, other)) return refuse(task, "group ", other.name);
    }
  }
  return {};
}

}  // namespace trainyard::app

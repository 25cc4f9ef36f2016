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
      if (row.with_group && failed_.contains(row.group)) take(index);
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
      if (row.with_group && groups.contains(row.group)) stick(index, row);
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

/// These tasks, the tasks without success that they need, and so on. What the run began without is
/// needed only by tasks that it began without, too. If one of these needs a whole group, some task
/// of that group must have run: a run may have been begun with a part of a group. Of a group without
/// any, these are the chosen tasks, or all if none is chosen.
std::set<model::TaskIndex> RetryNeeds::with_needed(
    const std::vector<const journal::TaskRow*>& tasks,
    const std::set<model::TaskIndex>& chosen) const {
  std::set<model::TaskIndex> found;
  std::set<model::GroupIndex> touched;
  std::set<model::GroupIndex> touched_by_new;
  const auto take = [&](const journal::TaskRow& row) {
    touched.insert(row.group);
    if (row.standing.verdict == model::Verdict::NotSelected) touched_by_new.insert(row.group);
    return found.insert(row.index).second;
  };
  const auto is_needed = [&](const journal::GroupRow& group,
                             const std::set<model::GroupIndex>& by) {
    return std::ranges::any_of(groups_, [&](const journal::GroupRow& other) {
      return by.contains(other.index) && needs_group(other, group);
    });
  };
  const auto take_bad = [&](const journal::GroupRow& group) {
    bool more = false;
    for (const auto& [index, row] : bad_) {
      if (row.group == group.index) more = take(row) || more;
    }
    return more;
  };
  const auto take_not_selected = [&](const journal::GroupRow& group) {
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
  for (const journal::TaskRow* const task : tasks) take(*task);
  for (bool more = true; more;) {
    more = false;
    for (const journal::TaskNeedRow& need : needs_) {
      if (!found.contains(need.task)) continue;
      const bool is_new = not_selected_.contains(need.task);
      const auto bad = bad_.find(need.needed);
      const auto not_selected = not_selected_.find(need.needed);
      if (bad != bad_.end()) more = take(bad->second) || more;
      if (is_new && not_selected != not_selected_.end()) more = take(not_selected->second) || more;
    }
    for (const journal::GroupRow& group : groups_) {
      if (is_needed(group, touched)) more = take_bad(group) || more;
      if (is_needed(group, touched_by_new)) more = take_not_selected(group) || more;
    }
  }
  return found;
}

Error RetryNeeds::refusal(const std::vector<const journal::TaskRow*>& refused,
                          const std::set<model::TaskIndex>& chosen, std::string_view run) const {
  const std::set<model::TaskIndex> found = with_needed(refused, chosen);
  std::vector<std::string> missing;
  std::vector<std::string> words;
  for (const journal::GroupRow& group : groups_) {
    std::vector<std::string> names;
    std::vector<std::string> not_chosen;
    // The name of a group stands for all of its tasks that have not finished.
    bool is_whole = std::ranges::any_of(
        groups_, [&group](const journal::GroupRow& other) { return needs_group(other, group); });
    for (const auto* const rows : {&bad_, &not_selected_}) {
      for (const auto& [index, row] : *rows) {
        if (row.group != group.index) continue;
        is_whole = is_whole && found.contains(index);
        if (!found.contains(index)) continue;
        names.push_back(text::shell_word(shown_name(row)));
        if (!chosen.contains(index)) not_chosen.push_back(fmt::format("'{}'", shown_name(row)));
      }
    }
    if (is_whole && !names.empty()) names = {text::shell_word(group.name)};
    if (is_whole && !not_chosen.empty()) not_chosen = {fmt::format("group '{}'", group.name)};
    std::ranges::move(names, std::back_inserter(words));
    std::ranges::move(not_chosen, std::back_inserter(missing));
  }
  const std::string first = shown_name(*refused.front());
  const std::string tasks = refused.size() == 1
                                ? first + " needs"
                                : fmt::format("{} and {} more need", first, refused.size() - 1);
  return Error{fmt::format("{} {}, which {} not succeeded; to run {}, type: trainyard retry {} {}",
                           tasks, list_text(missing), missing.size() == 1 ? "has" : "have",
                           words.size() == 2 ? "both" : "all", run, fmt::join(words, " "))};
}

Result<void> RetryNeeds::check(
    const std::vector<journal::TaskRow>& tasks, std::string_view run,
    const std::function<bool(const journal::TaskRow&)>& needs_success) const {
  const std::set<model::TaskIndex> chosen = task_indices(tasks);
  const auto stays_bad = [&](model::TaskIndex task) {
    return bad_.contains(task) && !chosen.contains(task);
  };
  std::set<model::TaskIndex> lacking;
  for (const journal::TaskNeedRow& need : needs_) {
    if (stays_bad(need.needed)) lacking.insert(need.task);
  }
  std::set<model::GroupIndex> bad;
  for (const auto& [index, row] : bad_) {
    if (stays_bad(index)) bad.insert(row.group);
  }
  std::set<model::GroupIndex> lacking_groups;
  for (const journal::GroupRow& group : groups_) {
    const bool is_lacking = std::ranges::any_of(groups_, [&](const journal::GroupRow& other) {
      return bad.contains(other.index) && needs_group(group, other);
    });
    if (is_lacking) lacking_groups.insert(group.index);
  }
  const auto lacks_not_selected = [&](const journal::TaskRow& task) {
    return std::ranges::any_of(with_needed({&task}, chosen), [&](model::TaskIndex index) {
      return not_selected_.contains(index) && !chosen.contains(index);
    });
  };
  std::vector<const journal::TaskRow*> refused;
  for (const journal::TaskRow& task : tasks) {
    const model::Verdict verdict = task.standing.verdict;
    const bool lacks = lacking.contains(task.index) || lacking_groups.contains(task.group);
    // Only a task that needs success is skipped because of another group.
    const bool is_skipped_by_need = verdict == model::Verdict::Skipped && !task.with_group;
    const bool is_refused = (lacks && is_skipped_by_need) ||
                            (lacks && !is_finished(task) && needs_success(task)) ||
                            (verdict == model::Verdict::NotSelected && lacks_not_selected(task));
    if (is_refused) refused.push_back(&task);
  }
  if (refused.empty()) return {};
  return std::unexpected(refusal(refused, chosen, run));
}

}  // namespace trainyard::app

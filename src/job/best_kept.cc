#include "job/best_kept.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/score.h"

namespace trainyard::job {
namespace {

/// Such a task reads nothing any more, and is not retried.
bool has_read(model::Verdict verdict) {
  return verdict == model::Verdict::Finished || verdict == model::Verdict::NotNeeded;
}

}  // namespace

void BestKept::add(const model::Plan& plan, const std::vector<KeptGroup>& groups) {
  const bool keeps =
      std::ranges::any_of(groups, [](const KeptGroup& it) { return it.keep.has_value(); });
  if (kept_.empty() && !keeps) {
    start_.group += static_cast<std::uint32_t>(plan.groups.size());
    start_.task += static_cast<std::uint32_t>(plan.tasks.size());
    return;
  }
  const model::PlanStart start{.group = static_cast<std::uint32_t>(groups_.size()),
                               .shape = 0,
                               .task = static_cast<std::uint32_t>(tasks_.size())};
  for (const KeptGroup& group : groups) add_group(group);
  for (std::uint32_t i = 0; i < plan.tasks.size(); ++i) {
    const std::uint32_t number = start.group + plan.shape_of({i}).group.value;
    const bool is_open = !has_read(plan.tasks[i].before);
    tasks_.push_back({.group = number, .is_open = is_open});
    Group& group = groups_[number];
    if (is_open) ++group.open;
    if (is_open && group.round) ++rounds_[*group.round].open;
  }
  add_needs(plan, start);
}

void BestKept::add_group(const KeptGroup& group) {
  const auto number = static_cast<std::uint32_t>(groups_.size());
  groups_.push_back({.round = group.round, .is_for_rounds = group.is_for_rounds});
  if (group.keep) groups_.back().kept = kept_number(group);
  if (group.round) rounds_[*group.round].groups.push_back(number);
}

/// Groups in several rounds are one here.
std::size_t BestKept::kept_number(const KeptGroup& group) {
  if (group.round) {
    for (const Group& other : groups_) {
      if (other.kept && other.round && kept_[*other.kept].told.name == group.name) {
        return *other.kept;
      }
    }
  }
  kept_.push_back({.told = {.name = group.name, .keep = group.keep.value_or(Keep{})}});
  return kept_.size() - 1;
}

void BestKept::link(std::uint32_t reader, std::uint32_t group) {
  groups_[group].read_by.push_back(reader);
  groups_[reader].reads.push_back(group);
}

void BestKept::add_needs(const model::Plan& plan, const model::PlanStart& start) {
  for (std::uint32_t i = 0; i < plan.groups.size(); ++i) {
    const std::uint32_t reader = start.group + i;
    for (const model::GroupIndex need : plan.groups[i].needs) {
      link(reader, start.group + need.value);
    }
    for (const model::GroupIndex need : plan.groups[i].needs_earlier) {
      if (need.value >= start_.group) link(reader, need.value - start_.group);
    }
  }
  for (const model::TaskNeed& need : plan.task_needs) {
    const std::uint32_t reader = start.task + need.task.value;
    const std::uint32_t needed = start.task + need.needed.value;
    if (!groups_[tasks_[needed].group].kept) continue;
    needed_by_[reader].push_back(needed);
    if (tasks_[reader].is_open) ++open_readers_[needed];
  }
}

const Keep* BestKept::keep_of(model::TaskIndex task) const {
  if (kept_.empty() || task.value < start_.task) return nullptr;
  const std::uint32_t number = task.value - start_.task;
  if (number >= tasks_.size()) return nullptr;
  const std::optional<std::size_t> kept = groups_[tasks_[number].group].kept;
  return kept ? &kept_[*kept].told.keep : nullptr;
}

std::size_t BestKept::number_of(model::TaskIndex task) const {
  return groups_[tasks_[task.value - start_.task].group].kept.value_or(0);
}

void BestKept::change(model::TaskIndex task, model::Verdict verdict, std::optional<double> number) {
  if (task.value < start_.task || task.value - start_.task >= tasks_.size()) return;
  const std::uint32_t index = task.value - start_.task;
  set_open(tasks_[index], index, !has_read(verdict));
  const bool has_finished = verdict == model::Verdict::Finished;
  const bool is_ranked = tasks_[index].place != Place::NotFinished;
  if (has_finished == is_ranked || !groups_[tasks_[index].group].kept) return;
  if (has_finished) {
    rank(index, number);
  } else {
    forget(index);
  }
}

void BestKept::set_open(Task& task, std::uint32_t number, bool is_open) {
  if (task.is_open == is_open) return;
  task.is_open = is_open;
  Group& group = groups_[task.group];
  const std::uint32_t by = is_open ? 1 : -1U;
  group.open += by;
  if (group.round) rounds_[*group.round].open += by;
  if (const auto needed = needed_by_.find(number); needed != needed_by_.end()) {
    for (const std::uint32_t each : needed->second) {
      if ((open_readers_[each] += by) == 0) to_look_at_.push_back(each);
    }
  }
  if (group.open == 0) group_closed(group);
}

void BestKept::group_closed(const Group& group) {
  for (const std::uint32_t read : group.reads) release(read);
  if (!group.round || *group.round == 0 || rounds_[*group.round].open > 0) return;
  for (const std::uint32_t before : rounds_[*group.round - 1].groups) release(before);
}

void BestKept::no_more_rounds() {
  if (std::exchange(rounds_are_over_, true)) return;
  for (std::uint32_t group = 0; group < groups_.size(); ++group) release(group);
}

/// The waiting tasks are checked again.
void BestKept::release(std::uint32_t group) {
  std::ranges::copy(groups_[group].waiting, std::back_inserter(to_look_at_));
  groups_[group].waiting.clear();
}

void BestKept::rank(std::uint32_t task, std::optional<double> number) {
  Kept& kept = kept_[*groups_[tasks_[task].group].kept];
  ++kept.told.finished;
  if (!number || !std::isfinite(*number)) {
    ++kept.told.without;
    tasks_[task].place = Place::Without;
    return;
  }
  const double value = kept.told.keep.better == Better::More ? -*number : *number;
  tasks_[task].place = Place::Best;
  values_[task] = value;
  // Between two tasks with the same score, the first in the job file counts as better, so that a
  // resumed run chooses the same one.
  kept.best.insert({.value = value, .task = task});
  if (kept.best.size() <= static_cast<std::size_t>(kept.told.keep.best)) return;
  const std::uint32_t worst = std::prev(kept.best.end())->task;
  kept.best.erase(std::prev(kept.best.end()));
  values_.erase(worst);
  tasks_[worst].place = Place::Worse;
  ++kept.told.worse;
  to_look_at_.push_back(worst);
}

/// It is to finish once more.
void BestKept::forget(std::uint32_t task) {
  Kept& kept = kept_[*groups_[tasks_[task].group].kept];
  --kept.told.finished;
  switch (std::exchange(tasks_[task].place, Place::NotFinished)) {
    case Place::Best:
      kept.best.erase({.value = values_[task], .task = task});
      values_.erase(task);
      break;
    case Place::Given:
      --kept.told.given;
      --kept.told.worse;
      break;
    case Place::Worse:
      --kept.told.worse;
      break;
    case Place::Without:
      --kept.told.without;
      break;
    case Place::NotFinished:
      break;
  }
}

bool BestKept::is_read(const Group& group) const {
  if (group.is_for_rounds && !rounds_are_over_) return true;
  if (group.round && !rounds_are_over_) {
    const auto next = rounds_.find(*group.round + 1);
    if (next == rounds_.end() || next->second.open > 0) return true;
  }
  return std::ranges::any_of(group.read_by,
                             [this](std::uint32_t reader) { return groups_[reader].open > 0; });
}

std::vector<model::TaskIndex> BestKept::take() {
  std::vector<model::TaskIndex> given;
  for (const std::uint32_t number : std::exchange(to_look_at_, {})) {
    Task& task = tasks_[number];
    if (task.place != Place::Worse) continue;
    Group& group = groups_[task.group];
    if (is_read(group)) {
      group.waiting.push_back(number);
      continue;
    }
    const auto readers = open_readers_.find(number);
    // The last reader puts the task on the list again.
    if (readers != open_readers_.end() && readers->second > 0) continue;
    task.place = Place::Given;
    if (group.kept) ++kept_[*group.kept].told.given;
    given.push_back({start_.task + number});
  }
  return given;
}

std::vector<BestKept::Told> BestKept::told() const {
  std::vector<Told> all;
  all.reserve(kept_.size());
  for (const Kept& kept : kept_) all.push_back(kept.told);
  for (std::uint32_t number = 0; number < tasks_.size(); ++number) {
    if (tasks_[number].place != Place::Without) continue;
    Told& told = all[groups_[tasks_[number].group].kept.value_or(0)];
    if (told.unknown.size() < kUnknownTold) told.unknown.push_back({start_.task + number});
  }
  return all;
}

}  // namespace trainyard::job

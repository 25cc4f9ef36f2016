// Values of needed tasks, and of tasks in the round before, in the command of a task; and the end
// of a repeat.
#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "job/job.h"
#include "job/job_needs.h"
#include "job/job_state.h"
#include "job/needs_values.h"
#include "job/result_value.h"
#include "run/run_directory.h"
#include "text/condition.h"

namespace trainyard::job {
namespace {

std::span<const InitialSpec> initial_of(const JobSpec& spec) {
  if (!spec.repeat) return {};
  return spec.repeat->initial;
}

}  // namespace

std::vector<model::TaskIndex> Job::State::needed_of(model::TaskIndex task,
                                                    const std::string& group) const {
  const auto found = std::ranges::find(spec.groups, group, &GroupSpec::name);
  if (found == spec.groups.end()) return {};
  const auto number = static_cast<std::size_t>(found - spec.groups.begin());
  const std::uint32_t first = group_starts[number];
  const std::uint32_t last = number + 1 < group_starts.size()
                                 ? group_starts[number + 1]
                                 : static_cast<std::uint32_t>(plan->tasks.size());
  std::vector<model::TaskIndex> needed;
  const model::PlannedGroup& own = plan->groups[plan->shape_of(task).group.value];
  const model::GroupIndex other{static_cast<std::uint32_t>(number)};
  if (std::ranges::find(own.needs_by_task, other) == own.needs_by_task.end()) {
    for (std::uint32_t index = first; index < last; ++index) needed.push_back({index});
    return needed;
  }
  for (const model::TaskNeed& need :
       std::ranges::equal_range(plan->task_needs, task, {}, &model::TaskNeed::task)) {
    if (need.needed.value >= first && need.needed.value < last) needed.push_back(need.needed);
  }
  return needed;
}

Job::State::Other Job::State::other_in(const GroupSpec& group, std::size_t index,
                                       std::optional<std::uint32_t> round) const {
  const bool by_group = configuration.flag(settings::Setting::TaskDirectoryGrouping);
  const TaskOrigin origin = origin_of(group, index);
  text::Bindings bindings(kMatrixSlots);
  bind_combination(group, origin.combination, bindings);
  if (round) bindings[round_slot(group)] = fmt::to_string(*round);
  Other other{.group = round ? name_in_round(group.name, *round) : group.name,
              .id = make_id(group, origin, bindings)};
  const std::string directory = round ? run::round_directory(other.group, *round, by_group)
                                      : run::group_directory(1, group.name, by_group);
  other.directory =
      fmt::format("{}/{}", paths.run_directory, run::task_directory(directory, other.id));
  return other;
}

std::vector<Job::State::Other> Job::State::others_of(model::TaskIndex task, const Bound& bound,
                                                     const NeedsValue& value) const {
  std::vector<Other> others;
  std::string group = value.group;
  if (value.of_round_before && bound.group->round.value_or(0) > 0) {
    const auto found = std::ranges::find(spec.groups, group, &GroupSpec::name);
    const std::uint32_t round = bound.group->round.value_or(1) - 1;
    // A task is the same one in all rounds.
    const bool of_itself = &*found == bound.group && value.kind != NeedsValue::Kind::Directories;
    const std::size_t own = task.value - group_starts[bound.index.value];
    for (std::size_t i = 0; i < count_tasks(*found); ++i) {
      if (!of_itself || i == own) others.push_back(other_in(*found, i, round));
    }
    return others;
  }
  if (value.of_round_before) {
    for (const InitialSpec& initial : initial_of(spec)) {
      if (!initial.group.empty() && initial.of.group == value.group) group = initial.group;
    }
  }
  if (const auto before = std::ranges::find(spec.before, group, &GroupSpec::name);
      before != spec.before.end()) {
    for (std::size_t i = 0; i < count_tasks(*before); ++i) {
      others.push_back(other_in(*before, i, std::nullopt));
    }
    return others;
  }
  for (const model::TaskIndex it : needed_of(task, group)) {
    const Bound other = bind(it);
    others.push_back({.group = plan->groups[other.index.value].shown(),
                      .id = other.id,
                      .directory = directory_of(other)});
  }
  return others;
}

const std::string* Job::State::initial_text(const Bound& bound, const NeedsValue& value) const {
  if (!value.of_round_before || bound.group->round.value_or(0) > 0) return nullptr;
  for (const InitialSpec& initial : initial_of(spec)) {
    if (initial.group.empty() && initial.of == value) return &initial.text;
  }
  return nullptr;
}

std::optional<std::string> Job::State::bind_needs(model::TaskIndex task, Bound& bound,
                                                  const ResultOf& result_of) const {
  const std::size_t first = first_needs_slot(*bound.group);
  for (std::size_t i = 0; i < bound.group->needs_values.size(); ++i) {
    const NeedsValue& value = bound.group->needs_values[i];
    const std::size_t slot = first + i;
    if (!uses(*bound.group, *bound.task, slot)) continue;
    if (const std::string* const said = initial_text(bound, value)) {
      bound.bindings[slot] = *said;
      if (value.kind != NeedsValue::Kind::Directories) continue;
      bound.lists[slot] = said->empty() ? std::vector<std::string>() : std::vector{*said};
      continue;
    }
    const std::vector<Other> others = others_of(task, bound, value);
    if (value.kind == NeedsValue::Kind::Directories) {
      std::string joined;
      std::vector<std::string> directories;
      directories.reserve(others.size());
      for (const Other& other : others) {
        directories.push_back(bound.elsewhere.place_of(other.directory));
        joined += (joined.empty() ? "" : " ") + directories.back();
        bound.named_directories.push_back(other.directory);
      }
      bound.bindings[slot] = std::move(joined);
      bound.lists[slot] = std::move(directories);
    } else if (value.kind == NeedsValue::Kind::Directory) {
      bound.bindings[slot] = bound.elsewhere.place_of(others.front().directory);
      bound.named_directories.push_back(others.front().directory);
    } else if (result_of) {
      const Other& other = others.front();
      const std::optional<std::string> result = result_of(other.group, other.id);
      bound.bindings[slot] = result ? value_in_result(*result, value.key) : std::nullopt;
      if (!bound.bindings[slot]) {
        return fmt::format("'{{{}}}' has no value: {}/{} left no '{}' in its result",
                           name_of(value), other.group, other.id, value.key);
      }
      bound.bindings[slot] = bound.elsewhere.place_of(*bound.bindings[slot]);
    }
  }
  return std::nullopt;
}

Result<bool> Job::until_holds(const ResultOf& result_of) const {
  const std::optional<RepeatSpec>& repeat = state_->spec.repeat;
  if (!repeat || !repeat->until) return false;
  const Until& until = *repeat->until;
  const auto group = std::ranges::find(state_->spec.groups, until.group, &GroupSpec::name);
  const State::Other other = state_->other_in(*group, 0, group->round);
  const std::optional<std::string> result = result_of(other.group, other.id);
  const std::optional<std::string> value =
      result ? value_in_result(*result, until.key) : std::nullopt;
  const auto fail = [&](std::string_view what) {
    return std::unexpected(
        Error{fmt::format("until: '{}': {}/{} {}", until.text, other.group, other.id, what)});
  };
  if (!value) return fail(fmt::format("left no '{}' in its result", until.key));
  const std::optional<double> number = number_in_result(*result, until.key);
  if (!number)
    return fail(fmt::format("left '{}' as '{}', which is not a number", until.key, *value));
  return text::holds(until.is, *number, until.value);
}

}  // namespace trainyard::job

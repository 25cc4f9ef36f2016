// The part of a job by which some of its tasks are run alone.
#include <algorithm>

#include <fmt/format.h>

#include "base/nearest.h"
#include "job/job.h"
#include "job/job_state.h"
#include "model/status.h"

namespace trainyard::job {
namespace {

/// A misspelt task is not compared with the names of more tasks than this.
constexpr std::size_t kComparedMax = 10'000;

Error no_such_task(const Job& job, const std::string& pattern,
                   const std::vector<std::string>& ids) {
  if (pattern.starts_with(':')) {
    return Error{
        fmt::format("--only takes tasks, and '{}' is a state of tasks of a run; 'trainyard retry' "
                    "runs failed tasks again",
                    pattern)};
  }
  std::string text = fmt::format("the job has no task '{}'", pattern);
  if (ids.size() > kComparedMax) return Error{std::move(text)};
  const std::vector<std::string_view> names(ids.begin(), ids.end());
  if (const std::optional<std::string_view> near = nearest(pattern, names)) {
    return Error{text + fmt::format(" (did you mean '{}'?)", *near)};
  }
  std::vector<std::vector<std::pair<std::string, std::string>>> keys;
  for (std::uint32_t i = 0; i < ids.size(); ++i) keys.push_back(job.matrix_values({i}));
  std::vector<text::TaskNames> tasks;
  for (const auto& each : keys) {
    tasks.push_back({.keys = each});
  }
  const std::string values = text::values_instead(pattern, tasks);
  if (!values.empty() || ids.empty()) return Error{text + values};
  const model::GroupIndex group = job.plan().shape_of({0}).group;
  return Error{text + fmt::format("; tasks are named as in '{}/{}'",
                                  job.plan().groups[group.value].shown(), ids.front())};
}

/// The chosen tasks with the tasks that they need, in groups of which none was chosen itself: all
/// of a group, or those that are needed task by task.
std::vector<bool> with_what_they_need(const model::Plan& plan, std::vector<bool> chosen) {
  const auto group_of = [&plan](std::uint32_t task) {
    return plan.shape_of(model::TaskIndex{task}).group.value;
  };
  std::vector<bool> named(plan.groups.size(), false);
  std::vector<std::vector<std::uint32_t>> members(plan.groups.size());
  std::vector<std::uint32_t> left;
  for (std::uint32_t i = 0; i < chosen.size(); ++i) {
    members[group_of(i)].push_back(i);
    if (!chosen[i]) continue;
    named[group_of(i)] = true;
    left.push_back(i);
  }
  const auto take = [&](std::uint32_t task) {
    if (chosen[task] || named[group_of(task)]) return;
    chosen[task] = true;
    left.push_back(task);
  };
  std::vector<bool> whole(plan.groups.size(), false);
  while (!left.empty()) {
    const std::uint32_t task = left.back();
    left.pop_back();
    for (const model::TaskNeed& need : std::ranges::equal_range(
             plan.task_needs, model::TaskIndex{task}, {}, &model::TaskNeed::task)) {
      take(need.needed.value);
    }
    for (const model::GroupIndex needed : plan.groups[group_of(task)].needs) {
      if (whole[needed.value]) continue;
      whole[needed.value] = true;
      for (const std::uint32_t member : members[needed.value]) take(member);
    }
  }
  return chosen;
}

}  // namespace

Result<void> Job::choose(const std::vector<text::TaskPattern>& patterns) {
  auto plan = std::make_shared<model::Plan>(*state_->plan);
  std::vector<std::string> ids;
  ids.reserve(plan->tasks.size());
  for (std::uint32_t i = 0; i < plan->tasks.size(); ++i) ids.push_back(task_id({i}));
  const text::TaskChoice choice(patterns, [&](const auto& look_at) {
    for (std::uint32_t i = 0; i < plan->tasks.size(); ++i) {
      const model::TaskIndex task{i};
      const model::PlannedGroup& group = plan->groups[plan->shape_of(task).group.value];
      const auto keys = matrix_values(task);
      look_at({.group = group.shown(), .group_in_file = group.name, .id = ids[i], .keys = keys});
    }
  });
  for (const text::TaskChoice::Meant& meant : choice.meant()) {
    if (meant.tasks.empty()) return std::unexpected(no_such_task(*this, meant.text, ids));
  }
  const std::vector<bool> to_run = with_what_they_need(*plan, choice.chosen());
  for (std::uint32_t i = 0; i < plan->tasks.size(); ++i) {
    if (!to_run[i]) plan->tasks[i].before = model::Verdict::NotSelected;
  }
  state_->plan = std::move(plan);
  return {};
}

}  // namespace trainyard::job

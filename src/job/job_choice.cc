// The part of a job by which some of its tasks are run alone.
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/nearest.h"
#include "base/result.h"
#include "job/job.h"
#include "job/job_state.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/status.h"
#include "text/task_pattern.h"

namespace trainyard::job {
namespace {

/// Of more tasks than this nobody is offered another one.
constexpr std::size_t kComparedMax = 10'000;

Error no_such_task(const std::string& pattern, const std::vector<std::string>& ids) {
  const std::vector<std::string_view> names(ids.begin(), ids.end());
  const std::optional<std::string_view> near =
      ids.size() <= kComparedMax ? nearest(pattern, names) : std::nullopt;
  return Error{fmt::format("the job has no task '{}'{}", pattern,
                           near ? fmt::format(", did you mean '{}'?", *near) : std::string())};
}

/// Which groups are needed by one with a chosen task, and have none themselves.
std::vector<bool> groups_taken_along(const model::Plan& plan, const std::vector<bool>& chosen) {
  std::vector<bool> has_some(plan.groups.size(), false);
  for (std::uint32_t i = 0; i < chosen.size(); ++i) {
    if (chosen[i]) has_some[plan.shape_of(model::TaskIndex{i}).group.value] = true;
  }
  std::vector<bool> along(plan.groups.size(), false);
  std::vector<std::uint32_t> left;
  for (std::uint32_t group = 0; group < has_some.size(); ++group) {
    if (has_some[group]) left.push_back(group);
  }
  while (!left.empty()) {
    const std::uint32_t group = left.back();
    left.pop_back();
    for (const model::GroupIndex needed : plan.groups[group].needs) {
      if (has_some[needed.value] || along[needed.value]) continue;
      along[needed.value] = true;
      left.push_back(needed.value);
    }
  }
  return along;
}

}  // namespace

Result<void> Job::choose(const std::vector<text::TaskPattern>& patterns) {
  auto plan = std::make_shared<model::Plan>(*state_->plan);
  text::TaskChoice choice(patterns);
  std::vector<std::string> ids;
  ids.reserve(plan->tasks.size());
  for (std::uint32_t i = 0; i < plan->tasks.size(); ++i) {
    const model::TaskIndex task{i};
    const std::string& group = plan->groups[plan->shape_of(task).group.value].name;
    const auto keys = matrix_values(task);
    ids.push_back(task_id(task));
    choice.look_at({.group = group, .group_in_file = group, .id = ids.back(), .keys = keys});
  }
  for (const text::TaskChoice::Meant& meant : choice.meant()) {
    if (meant.tasks.empty()) return std::unexpected(no_such_task(meant.text, ids));
  }
  const std::vector<bool> chosen = choice.chosen();
  const std::vector<bool> along = groups_taken_along(*plan, chosen);
  for (std::uint32_t i = 0; i < plan->tasks.size(); ++i) {
    if (chosen[i] || along[plan->shape_of(model::TaskIndex{i}).group.value]) continue;
    plan->tasks[i].before = model::Verdict::LeftOut;
  }
  state_->plan = std::move(plan);
  return {};
}

}  // namespace trainyard::job

// The part of a job that knows what of the tasks that one needs stands in its command.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "job/job.h"
#include "job/job_binding.h"
#include "job/job_spec.h"
#include "job/job_state.h"
#include "job/needs_values.h"
#include "model/ids.h"
#include "model/plan.h"

namespace trainyard::job {
namespace {

/// A value of a result as text: a number or a text as it is, anything else as JSON.
std::optional<std::string> value_in(const std::string& result, const std::string& key) {
  const nlohmann::json json = nlohmann::json::parse(result, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  const auto found = json.find(key);
  if (found == json.end() || found->is_null()) return std::nullopt;
  return found->is_string() ? found->get<std::string>() : found->dump();
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

std::optional<std::string> Job::State::bind_needs(model::TaskIndex task, Bound& bound,
                                                  const ResultOf& result_of) const {
  const std::size_t first = first_needs_slot(*bound.group);
  for (std::size_t i = 0; i < bound.group->needs_values.size(); ++i) {
    const NeedsValue& value = bound.group->needs_values[i];
    const std::size_t slot = first + i;
    if (!uses(*bound.group, *bound.task, slot)) continue;
    std::vector<std::string> directories;
    const std::vector<model::TaskIndex> needed = needed_of(task, value.group);
    directories.reserve(needed.size());
    for (const model::TaskIndex it : needed) directories.push_back(directory_of(bind(it)));
    if (value.kind == NeedsValue::Kind::Directories) {
      std::string joined;
      for (const std::string& directory : directories) {
        joined += (joined.empty() ? "" : " ") + directory;
      }
      bound.bindings[slot] = std::move(joined);
      bound.lists[slot] = std::move(directories);
    } else if (value.kind == NeedsValue::Kind::Directory) {
      bound.bindings[slot] = directories.front();
    } else if (result_of) {
      const Bound other = bind(needed.front());
      const std::string& shown = plan->groups[other.index.value].shown();
      const std::optional<std::string> result = result_of(shown, other.id);
      bound.bindings[slot] = result ? value_in(*result, value.key) : std::nullopt;
      if (!bound.bindings[slot]) {
        return fmt::format("'{{{}}}' has no value: {}/{} left no '{}' in its result",
                           name_of(value), shown, other.id, value.key);
      }
    }
  }
  return std::nullopt;
}

}  // namespace trainyard::job

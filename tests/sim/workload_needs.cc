#include "sim/workload_needs.h"

#include <cstddef>
#include <set>
#include <vector>

#include "model/ids.h"
#include "model/terms.h"
#include "sim/random.h"

namespace trainyard::sim {
namespace {

std::vector<model::TaskIndex> tasks_of(const model::Plan& plan, model::GroupIndex group) {
  std::vector<model::TaskIndex> tasks;
  for (std::uint32_t index = 0; index < plan.tasks.size(); ++index) {
    if (plan.shape_of({index}).group == group) tasks.push_back({index});
  }
  return tasks;
}

}  // namespace

void make_some_need_tasks(model::Plan& plan, std::uint64_t seed) {
  Random random(seed ^ 0x2EEDULL);
  if (!random.one_in(3)) return;
  for (std::uint32_t index = 0; index < plan.groups.size(); ++index) {
    model::PlannedGroup& group = plan.groups[index];
    if (group.needs.empty() || random.one_in(3)) continue;
    const auto which = static_cast<std::ptrdiff_t>(random.below(group.needs.size()));
    const model::GroupIndex other = group.needs[static_cast<std::size_t>(which)];
    group.needs.erase(group.needs.begin() + which);
    group.needs_by_task.push_back(other);
    const std::vector<model::TaskIndex> there = tasks_of(plan, other);
    for (const model::TaskIndex task : tasks_of(plan, {index})) {
      std::set<model::TaskIndex> needed;
      for (std::int64_t i = random.between(0, 3); i > 0; --i) {
        needed.insert(there[static_cast<std::size_t>(random.below(there.size()))]);
      }
      for (const model::TaskIndex it : needed) {
        plan.task_needs.push_back({.task = task, .needed = it});
      }
    }
  }
  for (model::Shape& shape : plan.shapes) {
    if (random.one_in(8)) shape.terms.run_if = model::RunIf::Failure;
    if (random.one_in(8)) shape.terms.run_if = model::RunIf::Always;
  }
}

}  // namespace trainyard::sim

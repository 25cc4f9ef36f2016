#include "sim/workload_batches.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/bytes.h"
#include "base/time.h"
#include "model/ids.h"
#include "model/resources.h"
#include "model/status.h"

namespace trainyard::sim {
namespace {

/// The state that a waiting task had reached before the run was resumed.
model::Reached make_reached(model::TaskIndex task, const model::Request& written, Random& random) {
  const auto tries = [&random] { return static_cast<std::uint8_t>(random.between(0, 4)); };
  return {.task = task,
          .memory = Bytes{written.memory.count / 10 * random.between(8, 25)},
          .gpu_memory = Bytes{written.gpu_memory.count / 10 * random.between(0, 25)},
          .largest = random.one_in(4),
          .tries = {.load = tries(), .train = tries(), .preempted = tries(), .crowded = tries()}};
}

/// The usage of a task that had finished before; that of some is unknown.
model::TakenBefore make_taken(model::TaskIndex task, const model::Request& written,
                              Random& random) {
  const auto taken = [&random](Bytes of) {
    return random.one_in(5) ? Bytes{} : Bytes{of.count / 10 * random.between(3, 20)};
  };
  return {.task = task,
          .memory = taken(written.memory),
          .gpu_memory = taken(written.gpu_memory),
          .gpu_memory_written =
              random.one_in(4) ? mib(random.between(256, 16'384)) : written.gpu_memory};
}

}  // namespace

void give_a_past(model::Plan& plan, Random& random) {
  for (std::uint32_t index = 0; index < plan.tasks.size(); ++index) {
    model::PlannedTask& task = plan.tasks[index];
    const model::Request& written = plan.shape_of({index}).terms.request;
    if (random.one_in(4)) {
      task.before = model::Verdict::Finished;
    } else if (random.one_in(12)) {
      task.before = random.one_in(2) ? model::Verdict::Failed : model::Verdict::Skipped;
    } else if (random.one_in(20)) {
      task.before = model::Verdict::NotSelected;
    }
    task.first_attempt = static_cast<std::uint32_t>(random.between(1, 4));
    if (task.finished_before() && random.one_in(2)) {
      plan.taken.push_back(make_taken({index}, written, random));
    } else if (task.is_open() && random.one_in(3)) {
      plan.reached.push_back(make_reached({index}, written, random));
    }
  }
}

namespace {

/// Whether the groups from here on can come later: none before needs one of them, and none of them
/// needs tasks of one before.
bool may_be_cut(const model::Plan& plan, std::uint32_t group) {
  const auto crosses = [&](std::uint32_t own) {
    return std::ranges::any_of(plan.groups[own].needs_by_task, [&](model::GroupIndex need) {
      return (need.value < group) != (own < group);
    });
  };
  for (std::uint32_t own = 0; own < plan.groups.size(); ++own) {
    if (crosses(own)) return false;
  }
  return std::ranges::all_of(
      plan.groups.begin(), plan.groups.begin() + group, [group](const model::PlannedGroup& it) {
        return std::ranges::all_of(it.needs,
                                   [group](model::GroupIndex need) { return need.value < group; });
      });
}

/// The groups from `first` to before `last` as a plan of their own.
model::Plan part_of(const model::Plan& whole, std::uint32_t first, std::uint32_t last) {
  model::Plan part;
  for (std::uint32_t index = first; index < last; ++index) {
    model::PlannedGroup group = whole.groups[index];
    for (const model::GroupIndex need : std::exchange(group.needs, {})) {
      const bool own = need.value >= first;
      (own ? group.needs : group.needs_earlier).push_back({own ? need.value - first : need.value});
    }
    for (model::GroupIndex& need : group.needs_by_task) need.value -= first;
    part.groups.push_back(std::move(group));
  }
  std::uint32_t shapes_before = 0;
  for (const model::Shape& shape : whole.shapes) {
    if (shape.group.value < first) ++shapes_before;
    if (shape.group.value < first || shape.group.value >= last) continue;
    part.shapes.push_back({.group = {shape.group.value - first}, .terms = shape.terms});
  }
  std::uint32_t tasks_before = 0;
  for (model::PlannedTask task : whole.tasks) {
    const std::uint32_t group = whole.shapes[task.shape.value].group.value;
    if (group < first) ++tasks_before;
    if (group < first || group >= last) continue;
    task.shape.value -= shapes_before;
    part.tasks.push_back(task);
  }
  const auto is_in_part = [&](model::TaskIndex task) {
    return task.value >= tasks_before && task.value < tasks_before + part.tasks.size();
  };
  for (model::TaskNeed need : whole.task_needs) {
    if (!is_in_part(need.task)) continue;
    need.task.value -= tasks_before;
    need.needed.value -= tasks_before;
    part.task_needs.push_back(need);
  }
  for (model::Reached reached : whole.reached) {
    if (!is_in_part(reached.task)) continue;
    reached.task.value -= tasks_before;
    part.reached.push_back(reached);
  }
  for (model::TakenBefore taken : whole.taken) {
    if (!is_in_part(taken.task)) continue;
    taken.task.value -= tasks_before;
    part.taken.push_back(taken);
  }
  return part;
}

}  // namespace

std::vector<Addition> cut_into_additions(const model::Plan& plan, Random& random) {
  std::vector<Addition> additions;
  const bool grows = random.one_in(2);
  const auto groups = static_cast<std::uint32_t>(plan.groups.size());
  std::uint32_t first = 0;
  Instant at;
  for (std::uint32_t group = 1; group <= groups; ++group) {
    const bool cut = group == groups || (grows && random.one_in(2) && may_be_cut(plan, group));
    if (!cut) continue;
    additions.push_back(
        {.at = at, .plan = std::make_shared<model::Plan>(part_of(plan, first, group))});
    first = group;
    at = at + random.between(Duration{0}, Duration{20'000});
  }
  return additions;
}

}  // namespace trainyard::sim

#include "job/jobs.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "job/task_keys.h"

namespace trainyard::job {

Jobs::Jobs(Job first) { entries_.push_back({.job = std::move(first)}); }

const Job& Jobs::add(Job job, std::vector<std::string> environment) {
  const Entry& last = entries_.back();
  const model::Plan& before = last.job.plan();
  const model::PlanStart start{
      .group = last.start.group + static_cast<std::uint32_t>(before.groups.size()),
      .shape = last.start.shape + static_cast<std::uint32_t>(before.shapes.size()),
      .task = last.start.task + static_cast<std::uint32_t>(before.tasks.size())};
  entries_.push_back(
      {.job = std::move(job), .environment = std::move(environment), .start = start});
  return entries_.back().job;
}

void Jobs::drop_last() { entries_.pop_back(); }

std::vector<const model::PlannedGroup*> Jobs::groups() const {
  std::vector<const model::PlannedGroup*> groups;
  for (const Entry& entry : entries_) {
    for (const model::PlannedGroup& group : entry.job.plan().groups) groups.push_back(&group);
  }
  return groups;
}

std::vector<std::string> Jobs::warnings() const {
  std::vector<std::string> warnings;
  for (const Entry& entry : entries_) {
    for (const std::string& warning : entry.job.warnings()) {
      if (std::ranges::find(warnings, warning) == warnings.end()) warnings.push_back(warning);
    }
  }
  return warnings;
}

Jobs::Owner Jobs::owner_of(model::TaskIndex task) const {
  const auto after = std::ranges::partition_point(
      entries_, [task](const Entry& it) { return it.start.task <= task.value; });
  const Entry& entry = *std::prev(after);
  return {.entry = entry,
          .task = {task.value - entry.start.task},
          .batch = static_cast<std::uint32_t>(after - entries_.begin())};
}

std::string Jobs::why_never_with(model::TaskIndex task, const RetryAmounts& amounts) const {
  const Owner owner = owner_of(task);
  const Job& job = owner.entry.job;
  const model::Policy policy = job.policy();
  const auto lack = find_lack_of_retry(
      terms_of(task), amounts,
      {.policy = policy, .capacity = job.capacity(), .machines = job.machines()});
  return lack ? lack->why : std::string();
}

const model::Terms& Jobs::terms_of(model::TaskIndex task) const {
  const Owner owner = owner_of(task);
  return owner.entry.job.plan().shape_of(owner.task).terms;
}

std::string Jobs::id_of(model::TaskIndex task) const {
  const Owner owner = owner_of(task);
  return owner.entry.job.task_id(owner.task);
}

std::string Jobs::name_of(model::TaskIndex task) const {
  const Owner owner = owner_of(task);
  const Job& job = owner.entry.job;
  const model::PlannedGroup& group = job.plan().groups[job.group_of(owner.task).value];
  return fmt::format("{}/{}", group.shown(), job.task_id(owner.task));
}

std::string Jobs::task_directory(model::TaskIndex task) const {
  const Owner owner = owner_of(task);
  return owner.entry.job.task_directory(owner.task);
}

Jobs::Place Jobs::place_of(model::TaskIndex task) const {
  const Owner owner = owner_of(task);
  return {.batch = owner.batch, .in_batch = owner.task};
}

std::optional<model::TaskIndex> Jobs::find(std::string_view group, std::string_view id) const {
  for (const Entry& entry : entries_) {
    for (const model::PlannedGroup& each : entry.job.plan().groups) {
      if (each.shown() != group) continue;
      const std::optional<model::TaskIndex> task = entry.job.find(each.name, id);
      if (task) return model::TaskIndex{entry.start.task + task->value};
    }
  }
  return std::nullopt;
}

std::optional<std::string> Jobs::metrics_of(model::TaskIndex task) const {
  const Owner owner = owner_of(task);
  const std::optional<Job::SaidValue> said =
      owner.entry.job.said_value(owner.task, TaskKey::Metrics);
  return said ? std::optional(said->text) : std::nullopt;
}

model::Launch Jobs::launch(model::AttemptKey key, const model::Grant& grant,
                           const ResultOf& result_of) const {
  const Owner owner = owner_of(key.task);
  model::Launch launch =
      owner.entry.job.launch({.task = owner.task, .attempt = key.attempt}, grant, result_of);
  launch.inherited = owner.entry.environment;
  return launch;
}

}  // namespace trainyard::job

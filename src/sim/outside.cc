#include "sim/outside.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/status.h"

namespace trainyard::sim {

Outside::Outside(const Plan& the_plan, const Limits& the_limits, const Capacity& the_capacity)
    : plan(the_plan),
      limits(the_limits),
      capacity(the_capacity),
      groups(the_plan.groups.size()),
      reasons(the_plan.shapes.size()),
      waiting_in(the_plan.shapes.size(), 0),
      available(the_capacity.memory) {
  const auto unused = static_cast<std::int64_t>(static_cast<double>(capacity.memory.count) *
                                                (1 - limits.memory_utilization_max));
  kept_free = std::max(limits.memory_remain, Bytes{unused});
  tasks.reserve(plan.tasks.size());
  for (const PlannedTask& planned : plan.tasks) {
    const Shape& shape = plan.shapes[planned.shape.value];
    SeenTask task{.shape = planned.shape,
                  .group = shape.group,
                  .next_attempt = planned.first_attempt,
                  .request = shape.request};
    if (planned.finished_before) {
      task.status = Status::Exited;
      task.verdict = Verdict::Finished;
    } else {
      ++groups[shape.group.value].open;
      ++waiting_in[planned.shape.value];
    }
    tasks.push_back(task);
  }
}

void Outside::read(const Sampled& reading) {
  available = reading.memory_available;
  cpu_of_others = reading.cpu_used_by_others;
  // A reading is the whole truth: what it does not mention has no memory.
  for (auto& [task, attempt] : running) attempt.measured = {};
  for (const TaskSample& sample : reading.tasks) {
    const auto found = running.find(sample.key.task);
    if (found != running.end() && found->second.key == sample.key) {
      found->second.measured = sample.memory;
    }
  }
}

void Outside::grant(const StartAttempt& command, Instant at) {
  running.try_emplace(command.key.task,
                      SeenAttempt{.key = command.key, .promise = command.promise, .granted = at});
  waiting.erase(command.key.task);
  SeenTask& seen = task(command.key.task);
  --waiting_in[seen.shape.value];
  ++groups[seen.group.value].running;
  seen.passed = 0;
}

SeenAttempt Outside::release(TaskIndex index) {
  auto node = running.extract(index);
  SeenAttempt attempt = std::move(node.mapped());
  available += attempt.measured;
  --groups[task(index).group.value].running;
  ++waiting_in[task(index).shape.value];
  return attempt;
}

Cpus Outside::cpus_free() const {
  Cpus free = capacity.cpus;
  for (const auto& [index, attempt] : running) free = free - attempt.promise.cpus;
  return free;
}

Request Outside::due(TaskIndex index) const {
  Request request = task(index).request;
  Bytes alone = available;
  for (const auto& [other, attempt] : running) alone += attempt.measured;
  alone = std::min(alone, capacity.memory) - kept_free;
  const Bytes asked = shape_of(index).request.memory;
  if (request.memory > alone) request.memory = std::max(alone, std::min(asked, request.memory));
  return request;
}

Bytes Outside::memory_free_by_ledger() const {
  Bytes free = capacity.memory - kept_free;
  for (const auto& [index, attempt] : running) free -= attempt.holds();
  return free;
}

Bytes Outside::memory_free_by_reading() const {
  Bytes free = available - kept_free;
  for (const auto& [index, attempt] : running) {
    free -= std::max(Bytes{}, attempt.promise.memory - attempt.measured);
  }
  return free;
}

bool Outside::has_room_for(const Request& request) const {
  return request.cpus <= cpus_free() && request.memory <= memory_free_by_ledger() &&
         request.memory <= memory_free_by_reading();
}

int Outside::processes_max() const {
  int most = std::numeric_limits<int>::max();
  if (limits.processes_max > 0) most = limits.processes_max;
  if (capacity.processes_max > 0) most = std::min(most, capacity.processes_max);
  return most;
}

bool Outside::group_has_room(GroupIndex group) const {
  const int most = plan.groups[group.value].parallel_max;
  return most == 0 || groups[group.value].running < most;
}

bool Outside::cpus_left_alone() const {
  return limits.cpu_utilization_max >= 1 || cpu_of_others < limits.cpu_utilization_max;
}

bool Outside::gate_open() const {
  return interrupts == 0 && cpus_left_alone() && std::cmp_less(running.size(), processes_max());
}

std::optional<TaskIndex> Outside::oldest_without_room() const {
  const Cpus cpus = cpus_free();
  const Bytes memory = std::min(memory_free_by_ledger(), memory_free_by_reading());
  for (const TaskIndex index : waiting) {
    const SeenTask& seen = task(index);
    const Request needs = due(index);
    const bool fits = needs.cpus <= cpus && needs.memory <= memory;
    if (!fits && group_has_room(seen.group)) return index;
  }
  return std::nullopt;
}

bool Outside::is_owed_its_room(TaskIndex index, Instant at) const {
  const SeenTask& seen = task(index);
  if (seen.passed == 0) return false;
  return seen.passed >= limits.passes_max || at - seen.passed_since >= limits.passed_time_max;
}

std::optional<Instant> Outside::expected_end(const SeenAttempt& attempt, Instant at) const {
  const SeenGroup& group = groups[task(attempt.key.task).group.value];
  const Duration limit = shape_of(attempt.key.task).time_limit;
  const Instant began = attempt.started.value_or(attempt.granted);
  if (group.ended_well > 0) return std::max(at, began + group.durations / group.ended_well);
  if (limit > Duration{0}) return std::max(at, began + limit);
  return std::nullopt;
}

std::optional<Opening> Outside::opening_for(TaskIndex index, Instant at) const {
  struct Gift {
    std::optional<Instant> at;
    Bytes memory;
    Cpus cpus;
  };
  std::vector<Gift> gifts;
  gifts.reserve(running.size());
  for (const auto& [other, attempt] : running) {
    gifts.push_back(
        {.at = expected_end(attempt, at), .memory = attempt.holds(), .cpus = attempt.promise.cpus});
  }
  // Those of which nobody knows come last, the smallest first.
  std::ranges::sort(gifts, [](const Gift& a, const Gift& b) {
    if (a.at && b.at && *a.at != *b.at) return *a.at < *b.at;
    if (a.at.has_value() != b.at.has_value()) return a.at.has_value();
    return std::pair(a.memory, a.cpus) < std::pair(b.memory, b.cpus);
  });
  const Request need = due(index);
  Bytes memory = std::min(memory_free_by_ledger(), memory_free_by_reading());
  Cpus cpus = cpus_free();
  std::size_t given = 0;
  std::optional<Instant> when;
  while (need.memory > memory || need.cpus > cpus) {
    if (given == gifts.size()) return std::nullopt;
    // What is given at one moment is given together, but those of which nobody knows come singly.
    when = gifts[given].at;
    do {
      memory += gifts[given].memory;
      cpus = cpus + gifts[given].cpus;
      ++given;
    } while (when && given < gifts.size() && gifts[given].at == when);
  }
  return Opening{
      .at = when, .memory_beside = memory - need.memory, .cpus_beside = cpus - need.cpus};
}

bool Outside::would_delay(const Opening& opening, TaskIndex other, Instant at) const {
  const SeenTask& seen = task(other);
  const Request needs = due(other);
  if (needs.memory <= opening.memory_beside && needs.cpus <= opening.cpus_beside) return false;
  const SeenGroup& group = groups[seen.group.value];
  const Duration limit = shape_of(other).time_limit;
  std::optional<Duration> takes;
  if (group.ended_well > 0) {
    takes = group.longest;
  } else if (limit > Duration{0}) {
    takes = limit;
  }
  const bool gone = opening.at && takes && at + *takes <= *opening.at;
  return !gone;
}

Bytes after_out_of_memory(Bytes had, Bytes peak, Bytes most) {
  const Bytes more = std::max({had, Bytes{had.count + (had.count / 5)}, peak});
  return std::max(had, std::min(most, more));
}

}  // namespace trainyard::sim

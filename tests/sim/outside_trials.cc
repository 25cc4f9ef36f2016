// The part of the outside that knows who of a group is tried before the others start.
#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/status.h"
#include "sim/outside.h"

namespace trainyard::sim {

std::vector<model::TaskIndex> Outside::open_tasks_of(model::GroupIndex group) const {
  std::vector<model::TaskIndex> open;
  for (std::uint32_t index = 0; index < tasks.size(); ++index) {
    const SeenTask& seen = tasks[index];
    if (seen.group == group && seen.verdict == model::Verdict::None) open.push_back({index});
  }
  return open;
}

void Outside::begin_to_wait(model::TaskIndex index) {
  if (task(index).on_hold || needs_open_tasks(index)) {
    aside.insert(index);
    return;
  }
  // It ends in this turn, as what it needs has just failed.
  if (fate_of(index) != Fate::Runs) return;
  const Instant begins = groups[task(index).group.value].since + shape_of(index).terms.start_after;
  if (begins > latest) {
    task(index).begins_at = begins;
  } else {
    waiting.insert(index);
  }
}

void Outside::open(model::GroupIndex group) {
  const std::vector<model::TaskIndex> all = open_tasks_of(group);
  if (plan.groups[group.value].try_first && all.size() > 1) {
    try_one_of(all);
  } else {
    for (const model::TaskIndex index : all) begin_to_wait(index);
  }
}

/// Takes the task with the largest request: of whole GPUs, of memory there, of memory of the host.
void Outside::try_one_of(const std::vector<model::TaskIndex>& open) {
  const auto size = [this](model::TaskIndex index) {
    const model::Request& on_gpus = task(index).gpu_request;
    const bool whole = on_gpus.gpus > 0 && (on_gpus.largest || on_gpus.gpu_memory == Bytes{});
    return std::tuple(whole ? on_gpus.gpus : 0, on_gpus.gpus * on_gpus.gpu_memory.count,
                      task(index).request.memory);
  };
  std::vector<model::TaskIndex> may_run = open;
  std::erase_if(may_run, [this](model::TaskIndex index) {
    const Fate fate = fate_of(index);
    return fate == Fate::Skipped || fate == Fate::NotNeeded;
  });
  if (may_run.empty()) return;
  model::TaskIndex largest = may_run.front();
  for (const model::TaskIndex index : may_run) {
    if (size(index) > size(largest)) largest = index;
  }
  groups[task(largest).group.value].tried_first = largest;
  begin_to_wait(largest);
}

void Outside::end_trial(model::GroupIndex group) {
  const std::optional<model::TaskIndex> tried = groups[group.value].tried_first;
  groups[group.value].tried_first.reset();
  for (const model::TaskIndex index : open_tasks_of(group)) {
    if (index != tried) begin_to_wait(index);
  }
}

void Outside::leave_trial(model::TaskIndex index) {
  const model::GroupIndex group = task(index).group;
  const std::optional<model::TaskIndex> tried = groups[group.value].tried_first;
  if (!tried) return;
  std::vector<model::TaskIndex> others = open_tasks_of(group);
  std::erase_if(others, [&](model::TaskIndex it) { return it == index || it == *tried; });
  if (index != *tried) {
    if (others.empty()) groups[group.value].tried_first.reset();
    return;
  }
  groups[group.value].tried_first.reset();
  if (others.size() == 1) {
    begin_to_wait(others.front());
  } else {
    try_one_of(others);
  }
}

bool Outside::is_held(model::TaskIndex index) const {
  const std::optional<model::TaskIndex>& tried = groups[task(index).group.value].tried_first;
  return tried && *tried != index && task(index).verdict == model::Verdict::None;
}

std::optional<Instant> Outside::lives_since(model::TaskIndex index) const {
  const auto found = running.find(index);
  if (found == running.end()) return std::nullopt;
  const SeenAttempt& attempt = found->second;
  const bool left_alone = attempt.stop == StopReason::None && !attempt.word && attempt.started;
  return left_alone ? attempt.trains_since : std::nullopt;
}

}  // namespace trainyard::sim

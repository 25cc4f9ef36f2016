// The part of the scheduler that opens, skips and closes groups.
#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "base/time.h"
#include "model/command.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/status.h"
#include "schedule/ending.h"
#include "schedule/scheduler.h"
#include "schedule/state.h"

namespace trainyard::schedule {

void Scheduler::State::look_at_blocked_groups(model::Decision& out) {
  // A group that is skipped or has nothing to run lets those that need it be looked at in turn. The
  // groups have no cycle, so each round settles at least one more or ends.
  bool settled = true;
  while (settled) {
    settled = false;
    for (std::uint32_t index = 0; index < groups_.size(); ++index) {
      const model::GroupIndex group{index};
      if (groups_.phase(group) != model::GroupPhase::Blocked) continue;
      const GroupBook::Outlook outlook = groups_.outlook(group);
      if (outlook.phase == model::GroupPhase::Blocked) continue;
      settled = true;
      if (outlook.phase == model::GroupPhase::Running) {
        open_group(group, out);
      } else {
        skip_group(group, outlook.cause, out);
      }
    }
  }
}

void Scheduler::State::open_group(model::GroupIndex group, model::Decision& out) {
  groups_.enter(group, model::GroupPhase::Running);
  fresh_lanes_ = true;
  out_of_order_ = true;
  out.changes.emplace_back(
      model::GroupChanged{.group = group, .phase = model::GroupPhase::Running});
  for (const model::TaskIndex task : held_of(group)) {
    if (conclude_if_not_to_run(task, out)) settle_reason(tasks[task].shape, out);
  }
  if (groups_.planned(group).try_first && groups_.open(group) > 1) {
    begin_trial(group, out);
  } else {
    for (const model::TaskIndex task : held_of(group)) wait_to_start(task, out);
  }
  // None of its tasks is to run, or all had finished in an earlier execution. Who needs it is
  // looked at by the caller.
  if (groups_.open(group) > 0) return;
  const model::GroupPhase result = groups_.result(group);
  groups_.enter(group, result);
  out.changes.emplace_back(model::GroupChanged{.group = group, .phase = result});
}

void Scheduler::State::skip_group(model::GroupIndex group, const std::string& cause,
                                  model::Decision& out) {
  const auto [first, last] = groups_.members(group);
  for (model::TaskIndex task = first; task < last; ++task.value) {
    if (tasks[task].verdict == model::Verdict::None)
      conclude_waiting(task, model::Verdict::Skipped, cause, out);
  }
  for (std::uint32_t index = 0; index < shapes_.size(); ++index) {
    if (shapes_[index].group == group) set_reason({index}, {}, out);
  }
  groups_.enter(group, model::GroupPhase::Skipped);
  out.changes.emplace_back(
      model::GroupChanged{.group = group, .phase = model::GroupPhase::Skipped, .message = cause});
}

/// The run was interrupted before it could begin.
void Scheduler::State::stop_blocked_group(model::GroupIndex group, model::Decision& out) {
  const auto [first, last] = groups_.members(group);
  for (model::TaskIndex task = first; task < last; ++task.value) {
    if (tasks[task].verdict != model::Verdict::None) continue;
    conclude_waiting(task, model::Verdict::Stopped, why_stopped_, out);
  }
  groups_.enter(group, model::GroupPhase::Stopped);
  out.changes.emplace_back(
      model::GroupChanged{.group = group, .phase = model::GroupPhase::Stopped});
}

void Scheduler::State::close_group_if_over(model::GroupIndex group, model::Decision& out) {
  if (groups_.open(group) > 0 || groups_.phase(group) != model::GroupPhase::Running) return;
  const model::GroupPhase result = groups_.result(group);
  groups_.enter(group, result);
  failing_fast_.erase(group);
  out.changes.emplace_back(model::GroupChanged{.group = group, .phase = result});
  // At an interrupt those that are blocked are stopped, and not skipped for what they need.
  if (interrupts_ == 0) look_at_blocked_groups(out);
}

void Scheduler::State::fail_fast(model::GroupIndex group, Instant at, model::Decision& out) {
  failing_fast_.insert(group);
  // For good, so that none of them comes back to wait in a group that has failed.
  for (auto& [task, running] : running_) {
    if (group_of(task) == group) end_for(running, StopCause::FailFast, at, out);
  }
  for (const model::TaskIndex task : take_waiting(group)) {
    conclude_waiting(task, model::Verdict::Skipped, std::string(kFailedFast), out);
  }
  for (std::uint32_t index = 0; index < shapes_.size(); ++index) {
    if (shapes_[index].group == group) set_reason({index}, {}, out);
  }
}

}  // namespace trainyard::schedule

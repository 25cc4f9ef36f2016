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

namespace trainyard {

void Scheduler::State::look_at_blocked_groups(Decision& out) {
  // A group that is skipped or has nothing to run lets those that need it be looked at in turn. The
  // groups have no cycle, so each round settles at least one more or ends.
  bool settled = true;
  while (settled) {
    settled = false;
    for (std::uint32_t index = 0; index < groups_.size(); ++index) {
      const GroupIndex group{index};
      if (groups_.phase(group) != GroupPhase::Blocked) continue;
      const GroupBook::Outlook outlook = groups_.outlook(group);
      if (outlook.phase == GroupPhase::Blocked) continue;
      settled = true;
      if (outlook.phase == GroupPhase::Running) {
        open_group(group, out);
      } else {
        skip_group(group, outlook.cause, out);
      }
    }
  }
}

void Scheduler::State::open_group(GroupIndex group, Decision& out) {
  groups_.enter(group, GroupPhase::Running);
  fresh_lanes_ = true;
  out_of_order_ = true;
  out.changes.emplace_back(GroupChanged{.group = group, .phase = GroupPhase::Running});
  const auto [first, last] = members_[group.value];
  for (TaskIndex task = first; task < last; ++task.value) {
    if (tasks[task].verdict != Verdict::None) continue;
    waiting_.add(task, tasks[task].shape, group,
                 request_to_start(task, shape_of(task).request.memory));
  }
  if (groups_.open(group) > 0) return;
  const GroupPhase result = groups_.result(group);
  groups_.enter(group, result);
  out.changes.emplace_back(GroupChanged{.group = group, .phase = result});
}

void Scheduler::State::skip_group(GroupIndex group, const std::string& cause, Decision& out) {
  const auto [first, last] = members_[group.value];
  for (TaskIndex task = first; task < last; ++task.value) {
    if (tasks[task].verdict == Verdict::None) conclude_waiting(task, Verdict::Skipped, cause, out);
  }
  for (std::uint32_t index = 0; index < shapes_.size(); ++index) {
    if (shapes_[index].group == group) clear_reason({index}, out);
  }
  groups_.enter(group, GroupPhase::Skipped);
  out.changes.emplace_back(
      GroupChanged{.group = group, .phase = GroupPhase::Skipped, .message = cause});
}

void Scheduler::State::close_group_if_over(GroupIndex group, Decision& out) {
  if (groups_.open(group) > 0 || groups_.phase(group) != GroupPhase::Running) return;
  const GroupPhase result = groups_.result(group);
  groups_.enter(group, result);
  out.changes.emplace_back(GroupChanged{.group = group, .phase = result});
  if (interrupts_ == 0) look_at_blocked_groups(out);
}

void Scheduler::State::fail_fast(GroupIndex group, Instant at, Decision& out) {
  for (auto& [task, running] : running_) {
    if (group_of(task) == group) end_for(running, StopCause::FailFast, at, out);
  }
  for (const TaskIndex task : waiting_.clear(group)) {
    conclude_waiting(task, Verdict::Skipped, "another task of its group failed (fail-fast)", out);
  }
  for (std::uint32_t index = 0; index < shapes_.size(); ++index) {
    if (shapes_[index].group == group) clear_reason({index}, out);
  }
}

}  // namespace trainyard

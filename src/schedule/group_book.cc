#include "schedule/group_book.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/check.h"
#include "model/command.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/status.h"

namespace trainyard {

GroupBook::GroupBook(std::vector<PlannedGroup> groups,
                     const std::vector<std::uint32_t>& open_tasks) {
  check(groups.size() == open_tasks.size(), "every group is counted");
  groups_.reserve(groups.size());
  for (std::size_t i = 0; i < groups.size(); ++i) {
    groups_.push_back({.planned = std::move(groups[i]), .open = open_tasks[i]});
  }
}

bool GroupBook::has_room(GroupIndex group) const {
  const Group& state = groups_[group.value];
  return state.planned.parallel_max == 0 || state.running < state.planned.parallel_max;
}

void GroupBook::task_concluded(GroupIndex group, Verdict verdict) {
  Group& state = groups_[group.value];
  check(state.open > 0, "a group has no more ends than tasks");
  --state.open;
  if (verdict == Verdict::Failed) ++state.failed;
  if (verdict == Verdict::Skipped) ++state.skipped;
  if (verdict == Verdict::Stopped) ++state.stopped;
}

GroupBook::Outlook GroupBook::outlook(GroupIndex group) const {
  bool open = false;
  for (const GroupIndex needed : groups_[group.value].planned.needs) {
    const Group& other = groups_[needed.value];
    switch (other.phase) {
      case GroupPhase::Failed: {
        const bool failed = other.failed > 0;
        const auto count = failed ? other.failed : other.skipped;
        return {.phase = GroupPhase::Skipped,
                .cause = fmt::format("it needs group '{}', where {} {}", other.planned.name,
                                     count == 1 ? "a task" : fmt::format("{} tasks", count),
                                     failed       ? "failed"
                                     : count == 1 ? "was killed before it started"
                                                  : "were killed before they started")};
      }
      case GroupPhase::Skipped:
        return {.phase = GroupPhase::Skipped,
                .cause = fmt::format("it needs group '{}', which was skipped", other.planned.name)};
      case GroupPhase::Stopped:
        return {.phase = GroupPhase::Skipped,
                .cause = fmt::format("it needs group '{}', which was stopped", other.planned.name)};
      case GroupPhase::Finished:
        break;
      case GroupPhase::Blocked:
      case GroupPhase::Running:
        open = true;
        break;
    }
  }
  return {.phase = open ? GroupPhase::Blocked : GroupPhase::Running, .cause = {}};
}

GroupPhase GroupBook::result(GroupIndex group) const {
  const Group& state = groups_[group.value];
  check(state.open == 0, "a group is over when all its tasks are");
  if (state.stopped > 0) return GroupPhase::Stopped;
  return state.failed + state.skipped > 0 ? GroupPhase::Failed : GroupPhase::Finished;
}

void GroupBook::enter(GroupIndex group, GroupPhase phase) {
  Group& state = groups_[group.value];
  const bool begins = state.phase == GroupPhase::Blocked;
  const bool ends = state.phase == GroupPhase::Running && phase != GroupPhase::Blocked;
  check((begins || ends) && phase != state.phase,
        "a group is blocked, runs, and ends, in this order");
  state.phase = phase;
}

}  // namespace trainyard

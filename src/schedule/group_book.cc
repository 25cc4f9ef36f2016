#include "schedule/group_book.h"

#include <cstdint>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/check.h"
#include "model/command.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/status.h"

namespace trainyard::schedule {

void GroupBook::Counts::count(model::Verdict verdict, int by) {
  const auto add = [by](std::uint32_t& count) { count += static_cast<std::uint32_t>(by); };
  if (verdict == model::Verdict::None) add(open);
  if (verdict == model::Verdict::Failed) add(failed);
  if (verdict == model::Verdict::Skipped) add(skipped);
  if (verdict == model::Verdict::Stopped) add(stopped);
}

void GroupBook::add(model::PlannedGroup group, const Counts& tasks) {
  groups_.push_back({.planned = std::move(group), .tasks = tasks});
}

bool GroupBook::has_room(model::GroupIndex group) const {
  const Group& state = groups_[group.value];
  return state.planned.parallel_max == 0 || state.running < state.planned.parallel_max;
}

void GroupBook::task_concluded(model::GroupIndex group, model::Verdict verdict) {
  Counts& tasks = groups_[group.value].tasks;
  check(tasks.open > 0, "a group has no more ends than tasks");
  tasks.count(model::Verdict::None, -1);
  tasks.count(verdict, 1);
}

void GroupBook::task_reopened(model::GroupIndex group, model::Verdict before) {
  Counts& tasks = groups_[group.value].tasks;
  tasks.count(before, -1);
  tasks.count(model::Verdict::None, 1);
}

GroupBook::Outlook GroupBook::outlook(model::GroupIndex group) const {
  bool open = false;
  for (const model::GroupIndex needed : groups_[group.value].planned.needs) {
    const Group& other = groups_[needed.value];
    switch (other.phase) {
      case model::GroupPhase::Failed: {
        const bool failed = other.tasks.failed > 0;
        const auto count = failed ? other.tasks.failed : other.tasks.skipped;
        return {.phase = model::GroupPhase::Skipped,
                .cause = fmt::format("it needs group '{}', where {} {}", other.planned.shown(),
                                     count == 1 ? "a task" : fmt::format("{} tasks", count),
                                     failed       ? "failed"
                                     : count == 1 ? "was never started"
                                                  : "were never started")};
      }
      case model::GroupPhase::Skipped:
        return {
            .phase = model::GroupPhase::Skipped,
            .cause = fmt::format("it needs group '{}', which was skipped", other.planned.shown())};
      case model::GroupPhase::Stopped:
        return {
            .phase = model::GroupPhase::Skipped,
            .cause = fmt::format("it needs group '{}', which was stopped", other.planned.shown())};
      case model::GroupPhase::Finished:
        break;
      case model::GroupPhase::Blocked:
      case model::GroupPhase::Running:
        open = true;
        break;
    }
  }
  return {.phase = open ? model::GroupPhase::Blocked : model::GroupPhase::Running, .cause = {}};
}

model::GroupPhase GroupBook::result(model::GroupIndex group) const {
  const Group& state = groups_[group.value];
  check(state.tasks.open == 0, "a group is over when all its tasks are");
  // A group that was interrupted was not over, whatever had failed in it by then.
  if (state.tasks.stopped > 0) return model::GroupPhase::Stopped;
  return state.tasks.failed + state.tasks.skipped > 0 ? model::GroupPhase::Failed
                                                      : model::GroupPhase::Finished;
}

void GroupBook::enter(model::GroupIndex group, model::GroupPhase phase) {
  Group& state = groups_[group.value];
  const bool begins = state.phase == model::GroupPhase::Blocked;
  const bool ends =
      state.phase == model::GroupPhase::Running && phase != model::GroupPhase::Blocked;
  check((begins || ends) && phase != state.phase,
        "a group is blocked, runs, and ends, in this order");
  state.phase = phase;
}

void GroupBook::reopen(model::GroupIndex group) {
  Group& state = groups_[group.value];
  check(state.phase != model::GroupPhase::Blocked && state.phase != model::GroupPhase::Running,
        "only a group that is over is blocked again");
  state.phase = model::GroupPhase::Blocked;
}

}  // namespace trainyard::schedule

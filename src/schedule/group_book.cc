#include "schedule/group_book.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/check.h"

namespace trainyard::schedule {

void GroupBook::Counts::count(model::Verdict verdict, int by) {
  const auto add = [by](std::uint32_t& count) { count += static_cast<std::uint32_t>(by); };
  if (verdict == model::Verdict::None) add(open);
  if (verdict == model::Verdict::Finished) add(finished);
  if (verdict == model::Verdict::Failed) add(failed);
  if (verdict == model::Verdict::Skipped) add(skipped);
  if (verdict == model::Verdict::Stopped) add(stopped);
}

void GroupBook::add(model::PlannedGroup group, TaskRange members, const Counts& tasks,
                    Patience patience) {
  groups_.push_back(
      {.planned = std::move(group), .members = members, .tasks = tasks, .patience = patience});
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

bool GroupBook::needs_a_bad_one(model::GroupIndex group) const {
  const Group& state = groups_[group.value];
  if (state.phase == model::GroupPhase::Running) return state.began_after_failure;
  return std::ranges::any_of(state.planned.needs, [this](model::GroupIndex needed) {
    const model::GroupPhase phase = groups_[needed.value].phase;
    return phase == model::GroupPhase::Failed || phase == model::GroupPhase::Skipped ||
           phase == model::GroupPhase::Stopped;
  });
}

std::string GroupBook::why_never(const Group& other) {
  switch (other.phase) {
    case model::GroupPhase::Failed:
      // No number: a retry of some of them changes it, and the skipped tasks keep the cause.
      return fmt::format("needs group '{}', where a task {}", other.planned.shown(),
                         other.tasks.failed > 0 ? "failed" : "was never started");
    case model::GroupPhase::Skipped:
      return fmt::format("needs group '{}', which was skipped", other.planned.shown());
    case model::GroupPhase::Stopped:
      return fmt::format("needs group '{}', which was stopped", other.planned.shown());
    case model::GroupPhase::Blocked:
    case model::GroupPhase::Running:
    case model::GroupPhase::Finished:
      break;
  }
  return {};
}

GroupBook::Outlook GroupBook::outlook(model::GroupIndex group) const {
  const Group& state = groups_[group.value];
  bool open = false;
  std::string cause;
  for (const model::GroupIndex needed : state.planned.needs) {
    const Group& other = groups_[needed.value];
    open = open || other.phase == model::GroupPhase::Blocked ||
           other.phase == model::GroupPhase::Running;
    if (cause.empty()) cause = why_never(other);
  }
  const bool hopeless = !cause.empty() && state.patience == Patience::UntilOneFails;
  return {.phase = hopeless ? model::GroupPhase::Skipped
                   : open   ? model::GroupPhase::Blocked
                            : model::GroupPhase::Running,
          .cause = std::move(cause)};
}

model::GroupPhase GroupBook::result(model::GroupIndex group) const {
  const Group& state = groups_[group.value];
  check(state.tasks.open == 0, "a group is over when all its tasks are");
  // A group that was interrupted was not over, whatever had failed in it by then.
  if (state.tasks.stopped > 0) return model::GroupPhase::Stopped;
  if (state.tasks.failed > 0) return model::GroupPhase::Failed;
  if (state.tasks.skipped == 0) return model::GroupPhase::Finished;
  return state.tasks.finished > 0 ? model::GroupPhase::Failed : model::GroupPhase::Skipped;
}

void GroupBook::enter(model::GroupIndex group, model::GroupPhase phase) {
  Group& state = groups_[group.value];
  const bool begins = state.phase == model::GroupPhase::Blocked;
  const bool ends =
      state.phase == model::GroupPhase::Running && phase != model::GroupPhase::Blocked;
  check((begins || ends) && phase != state.phase,
        "a group is blocked, runs, and ends, in this order");
  if (phase == model::GroupPhase::Running) state.began_after_failure = needs_a_bad_one(group);
  state.phase = phase;
}

void GroupBook::reopen(model::GroupIndex group) {
  Group& state = groups_[group.value];
  check(state.phase != model::GroupPhase::Blocked && state.phase != model::GroupPhase::Running,
        "only a group that is over is blocked again");
  state.phase = model::GroupPhase::Blocked;
}

}  // namespace trainyard::schedule

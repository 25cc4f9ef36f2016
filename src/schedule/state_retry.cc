// The part of the scheduler by which an ended task starts over: a task that a user asks for, and
// those behind it that were not needed.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/status.h"
#include "model/terms.h"
#include "schedule/group_book.h"
#include "schedule/scheduler.h"
#include "schedule/state.h"

namespace trainyard::schedule {

void Scheduler::State::retry_asked(const model::RetryAsked& event, model::Decision& out) {
  const bool may = may_begin_anew(event.task);
  out.commands.emplace_back(model::Answer{.request = event.request, .done = may});
  if (may) begin_anew(event, out);
}

/// Tasks behind it that were not needed start over with it, and so on. Such a chain may be as long
/// as the run has groups, which is too deep for a recursion.
void Scheduler::State::begin_anew(const model::RetryAsked& event, model::Decision& out) {
  std::vector<TaskRange> behind = reopen(event, out);
  std::ranges::reverse(behind);
  while (!behind.empty()) {
    auto& [first, last] = behind.back();
    const model::TaskIndex task{first.value++};
    if (first == last) behind.pop_back();
    if (!may_be_needed_now(task)) continue;
    const std::vector<TaskRange> next = reopen({.task = task}, out);
    behind.insert(behind.end(), next.rbegin(), next.rend());
  }
}

/// One task starts over. Returns the tasks behind it, in order: some may be needed now.
std::vector<TaskRange> Scheduler::State::reopen(const model::RetryAsked& event,
                                                model::Decision& out) {
  std::vector<TaskRange> behind;
  const model::GroupIndex group = group_of(event.task);
  groups_.task_reopened(group, tasks[event.task].verdict);
  needs_.reopened(event.task, tasks[event.task].verdict);
  tasks.reopen(event.task);
  out.changes.emplace_back(model::TaskChanged{.key = {.task = event.task, .attempt = 0}});
  ask_for(event, out);
  fresh_lanes_ = true;
  switch (groups_.phase(group)) {
    case model::GroupPhase::Running:
      // The group goes on: it has other tasks without a verdict.
      if (conclude_if_not_to_run(event.task, out)) break;
      if (is_held(event.task)) {
        tell_of_trial(group, trials_.at(group), out);
      } else {
        wait_to_start(event.task, out);
      }
      break;
    case model::GroupPhase::Blocked:
      tell_why_blocked(tasks[event.task].shape, out);
      break;
    default:
      groups_.reopen(group);
      out.changes.emplace_back(
          model::GroupChanged{.group = group, .phase = model::GroupPhase::Blocked});
      look_at_blocked_groups(out);
      tell_who_is_blocked({}, out);
      behind = tasks_behind(group);
  }
  for (const model::TaskNeed& need : needs_.needed_by(event.task)) {
    behind.emplace_back(need.task, model::TaskIndex{need.task.value + 1});
  }
  return behind;
}

/// The tasks of all groups that need a group.
std::vector<TaskRange> Scheduler::State::tasks_behind(model::GroupIndex group) const {
  std::vector<TaskRange> behind;
  for (std::uint32_t index = 0; index < groups_.size(); ++index) {
    const std::vector<model::GroupIndex>& needs = groups_.planned({index}).needs;
    if (std::ranges::find(needs, group) == needs.end()) continue;
    const auto [first, last] = groups_.members({index});
    if (first != last) behind.emplace_back(first, last);
  }
  return behind;
}

/// Whether a task that was not needed may be, as what it needs has yet to end.
bool Scheduler::State::may_be_needed_now(model::TaskIndex task) const {
  if (tasks[task].verdict != model::Verdict::NotNeeded || !may_begin_anew(task)) return false;
  const model::GroupIndex group = group_of(task);
  const bool group_waits = groups_.phase(group) != model::GroupPhase::Running &&
                           groups_.outlook(group).phase == model::GroupPhase::Blocked;
  return group_waits || needs_.of(task).open > 0;
}

/// A task that would only be skipped does not: what it needs has failed, or its group is just
/// ending as one of it failed. One that is not needed does, and is NOT_NEEDED at once.
bool Scheduler::State::may_begin_anew(model::TaskIndex task) const {
  if (interrupts_ > 0 || !tasks.knows(task)) return false;
  const model::Verdict verdict = tasks[task].verdict;
  if (verdict == model::Verdict::None || verdict == model::Verdict::Finished) return false;
  return fate_of(task) != Fate::Skipped && !failing_fast_.contains(group_of(task));
}

/// The request is written to the journal, so that a resumed run uses it.
void Scheduler::State::ask_for(const model::RetryAsked& event, model::Decision& out) {
  const model::Terms& terms = shape_of(event.task).terms;
  if (event.time_limit > Duration{0}) time_limits_[event.task] = event.time_limit;
  const bool is_more = retry_requests_.raise(
      event.task, terms, {.memory = event.memory, .gpu_memory = event.gpu_memory});
  if (is_more) tell_reached(event.task, std::max(event.memory, terms.request.memory), out);
}

Duration Scheduler::State::time_limit_of(model::TaskIndex task) const {
  const auto asked = time_limits_.find(task);
  return asked == time_limits_.end() ? shape_of(task).terms.time_limit : asked->second;
}

}  // namespace trainyard::schedule

// The part of the scheduler that takes in batches of groups with their tasks, and opens and closes
// the groups.
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/time.h"
#include "model/command.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/status.h"
#include "model/terms.h"
#include "model/waiting.h"
#include "schedule/another_try.h"
#include "schedule/ending.h"
#include "schedule/group_book.h"
#include "schedule/scheduler.h"
#include "schedule/state.h"
#include "schedule/task_table.h"
#include "schedule/waiting_room.h"

namespace trainyard::schedule {

/// Everything that is numbered by group, by shape or by task grows here and nowhere else, all by
/// the same plan. Ranks are the exception: a task without one comes last until tasks are put in
/// order again, which the opening of a group asks for.
void Scheduler::State::batch_added(const model::Plan& plan, Instant since, model::Decision& out) {
  const model::PlanStart start{.group = groups_.size(),
                               .shape = static_cast<std::uint32_t>(shapes_.size()),
                               .task = static_cast<std::uint32_t>(tasks.count())};
  shapes_.reserve(shapes_.size() + plan.shapes.size());
  for (model::Shape shape : plan.shapes) {
    shape.group.value += start.group;
    shapes_.push_back(shape);
  }
  tasks.reserve(plan.tasks.size());
  for (model::PlannedTask task : plan.tasks) {
    task.shape.value += start.shape;
    const model::TaskIndex index{static_cast<std::uint32_t>(tasks.count())};
    tasks.add(task);
    for (WaitingRoom* const room : {&waiting_, &loaded_}) {
      room->set_priority(index, shape_of(index).terms.priority);
    }
  }
  add_groups(plan, start);
  add_task_needs(plan, start);
  reasons_.resize(shapes_.size());
  noted_in_.resize(shapes_.size(), 0);
  durations_.resize(groups_.size());
  since_.resize(groups_.size(), since);
  go_on_with(plan, start);
  // A submission may have been on its way when the run was interrupted.
  if (interrupts_ > 0) {
    for (std::uint32_t index = start.group; index < groups_.size(); ++index) {
      stop_blocked_group({index}, out);
    }
    return;
  }
  // Groups that ended in an earlier execution end again first, so that the others see it.
  look_at_blocked_groups(out);
  tell_who_is_blocked(start, out);
  for (model::TaskIndex task{start.task}; tasks.knows(task); ++task.value) {
    if (may_be_needed_now(task)) begin_anew({.task = task}, out);
  }
}

/// Restores the state of earlier executions: the memory that tasks request since they ran out, how
/// often they did, how they failed, and what finished tasks took. Restores the measurements of
/// earlier runs, too.
void Scheduler::State::go_on_with(const model::Plan& plan, const model::PlanStart& start) {
  for (const model::Reached& before : plan.reached) {
    const model::TaskIndex task{start.task + before.task.value};
    const model::Terms& terms = shape_of(task).terms;
    tasks.take_over(task, tries_after_resume(before.tries, terms, policy_));
    retry_requests_.raise(task, terms, before);
  }
  for (const model::TakenBefore& taken : plan.taken) {
    const model::TaskIndex task{start.task + taken.task.value};
    estimates_.finished(tasks[task].shape,
                        {.memory = taken.memory, .gpu_memory = taken.gpu_memory});
    estimates_.took_of_gpu(group_of(task), taken.gpu_memory_written, taken.gpu_memory);
  }
  for (const model::SaidOfTask& said : plan.said) {
    const model::TaskIndex task{start.task + said.task.value};
    if (said.on_hold && tasks[task].verdict == model::Verdict::None) on_hold_.insert(task);
    if (!said.priority) continue;
    priorities_[task] = *said.priority;
    for (WaitingRoom* const room : {&waiting_, &loaded_}) room->set_priority(task, *said.priority);
  }
  for (const model::FailedBefore& before : plan.failed) {
    failed_with_[{start.task + before.task.value}] = own_message(before.message);
  }
  for (const model::SharingMeasured& before : plan.sharing) {
    prices_before_[{start.shape + before.shape.value}] = before;
  }
}

/// A task that needs others goes in the place of the first of these: it comes before tasks that
/// have not begun.
void Scheduler::State::add_task_needs(const model::Plan& plan, const model::PlanStart& start) {
  needs_.add(plan.task_needs, start, tasks);
  std::map<model::TaskIndex, model::TaskIndex> steads;
  for (model::TaskNeed need : plan.task_needs) {
    need.task.value += start.task;
    need.needed.value += start.task;
    const auto further = steads.find(need.needed);
    const model::TaskIndex earlier = further == steads.end() ? need.needed : further->second;
    const auto [stead, fresh] = steads.try_emplace(need.task, need.task);
    stead->second = std::min(stead->second, earlier);
  }
  for (const auto& [task, earlier] : steads) {
    for (WaitingRoom* const room : {&waiting_, &loaded_}) room->set_stead(task, earlier);
  }
}

/// The tasks of a group stand together, in the order of the groups.
void Scheduler::State::add_groups(const model::Plan& plan, const model::PlanStart& start) {
  std::uint32_t next = 0;
  for (std::uint32_t group = 0; group < plan.groups.size(); ++group) {
    const std::uint32_t first = next;
    GroupBook::Counts counts;
    bool conditional = false;
    while (next < plan.tasks.size() && plan.shape_of(model::TaskIndex{next}).group.value == group) {
      counts.count(plan.tasks[next].before, 1);
      const model::RunIf condition = plan.shape_of(model::TaskIndex{next}).terms.run_if;
      conditional = conditional || condition != model::RunIf::Success;
      ++next;
    }
    const TaskRange members{{start.task + first}, {start.task + next}};
    model::PlannedGroup added = plan.groups[group];
    for (std::vector<model::GroupIndex>* const needs : {&added.needs, &added.needs_by_task}) {
      for (model::GroupIndex& needed : *needs) needed.value += start.group;
    }
    for (const model::GroupIndex earlier : std::exchange(added.needs_earlier, {})) {
      check(earlier.value < start.group, "a group of an earlier batch");
      added.needs.push_back(earlier);
    }
    using Patience = GroupBook::Patience;
    groups_.add(std::move(added), members, counts,
                conditional ? Patience::UntilAllHaveEnded : Patience::UntilOneFails);
  }
  check(next == plan.tasks.size(), "the tasks of a plan come group by group");
}

void Scheduler::State::tell_who_is_blocked(const model::PlanStart& start, model::Decision& out) {
  std::vector<bool> open(shapes_.size(), false);
  for (model::TaskIndex task{start.task}; tasks.knows(task); ++task.value) {
    if (tasks[task].verdict == model::Verdict::None) open[tasks[task].shape.value] = true;
  }
  for (std::uint32_t index = start.shape; index < shapes_.size(); ++index) {
    const bool is_blocked = groups_.phase(shapes_[index].group) == model::GroupPhase::Blocked;
    if (is_blocked && open[index]) tell_why_blocked({index}, out);
  }
}

void Scheduler::State::tell_why_blocked(model::ShapeIndex shape, model::Decision& out) {
  std::string names;
  for (const model::GroupIndex needed : groups_.planned(shapes_[shape.value].group).needs) {
    const model::GroupPhase phase = groups_.phase(needed);
    if (phase != model::GroupPhase::Blocked && phase != model::GroupPhase::Running) continue;
    names += fmt::format("{}'{}'", names.empty() ? "" : ", ", groups_.planned(needed).shown());
  }
  set_reason(shape, {.cause = model::Cause::Group, .needs = {}, .groups = std::move(names)}, out);
}

void Scheduler::State::look_at_blocked_groups(model::Decision& out) {
  // A group that is skipped or has nothing to run causes a check of the groups that need it. The
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
  // None of its tasks is to run, or all had finished in an earlier execution. The caller checks the
  // groups that need it.
  if (groups_.open(group) > 0) return;
  const model::GroupPhase result = groups_.result(group);
  groups_.enter(group, result);
  out.changes.emplace_back(model::GroupChanged{.group = group, .phase = result});
}

void Scheduler::State::skip_group(model::GroupIndex group, const std::string& cause,
                                  model::Decision& out) {
  // If all its tasks were killed before, each has its own cause.
  const std::string why = groups_.open(group) > 0 ? cause : std::string();
  const auto [first, last] = groups_.members(group);
  for (model::TaskIndex task = first; task < last; ++task.value) {
    if (tasks[task].verdict == model::Verdict::None)
      conclude_waiting(task, {.verdict = model::Verdict::Skipped, .message = why}, out);
  }
  for (std::uint32_t index = 0; index < shapes_.size(); ++index) {
    if (shapes_[index].group == group) set_reason({index}, {}, out);
  }
  // After a retry of some tasks that it needs, tasks of an interrupted run are still STOPPED.
  const bool was_stopped = groups_.result(group) == model::GroupPhase::Stopped;
  const auto phase = was_stopped ? model::GroupPhase::Stopped : model::GroupPhase::Skipped;
  groups_.enter(group, phase);
  out.changes.emplace_back(model::GroupChanged{.group = group, .phase = phase, .message = why});
}

/// The run was interrupted before it could begin.
void Scheduler::State::stop_blocked_group(model::GroupIndex group, model::Decision& out) {
  const auto [first, last] = groups_.members(group);
  for (model::TaskIndex task = first; task < last; ++task.value) {
    if (tasks[task].verdict != model::Verdict::None) continue;
    conclude_waiting(task, {.verdict = model::Verdict::Stopped, .message = why_stopped_}, out);
  }
  // All of them may have been killed while the group waited. A group that never began has not
  // finished, even if no task of it was selected.
  model::GroupPhase result = groups_.result(group);
  if (result == model::GroupPhase::Finished) result = model::GroupPhase::Stopped;
  groups_.enter(group, result);
  out.changes.emplace_back(model::GroupChanged{.group = group, .phase = result});
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
    conclude_waiting(task,
                     {.verdict = model::Verdict::Skipped,
                      .message = "another task of its group failed (fail-fast)",
                      .with_group = true},
                     out);
  }
  for (std::uint32_t index = 0; index < shapes_.size(); ++index) {
    if (shapes_[index].group == group) set_reason({index}, {}, out);
  }
}

}  // namespace trainyard::schedule

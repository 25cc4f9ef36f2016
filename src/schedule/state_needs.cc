// The part of the scheduler by which tasks wait for others that they need themselves, run or not by
// what became of these, and are kept from starting by a person.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/time.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/status.h"
#include "model/terms.h"
#include "model/waiting.h"
#include "schedule/group_book.h"
#include "schedule/scheduler.h"
#include "schedule/state.h"
#include "schedule/task_needs.h"
#include "schedule/waiting_room.h"

namespace trainyard::schedule {

/// The fate of a task without a verdict whose group may run.
Scheduler::State::Fate Scheduler::State::fate_of(model::TaskIndex task) const {
  const model::RunIf condition = shape_of(task).terms.run_if;
  const TaskNeeds::Counts needs = needs_.of(task);
  const bool badly = needs.badly > 0 || groups_.needs_a_bad_one(group_of(task));
  if (badly && condition == model::RunIf::Success) return Fate::Skipped;
  if (needs.open > 0) return Fate::Open;
  if (!badly && condition == model::RunIf::Failure) return Fate::NotNeeded;
  return Fate::Runs;
}

bool Scheduler::State::is_not_to_run(model::TaskIndex task) const {
  const Fate fate = fate_of(task);
  return fate == Fate::Skipped || fate == Fate::NotNeeded;
}

std::string Scheduler::State::why_skipped(model::TaskIndex task) const {
  for (const model::TaskNeed& need : needs_.needs_of(task)) {
    const model::Verdict verdict = tasks[need.needed].verdict;
    if (verdict == model::Verdict::None || is_well(verdict)) continue;
    const auto what = [verdict] {
      switch (verdict) {
        case model::Verdict::Failed:
          return "failed";
        case model::Verdict::Stopped:
          return "was stopped";
        default:
          return "was skipped";
      }
    };
    return fmt::format("needs a task of group '{}' that {}",
                       groups_.planned(group_of(need.needed)).shown(), what());
  }
  return groups_.outlook(group_of(task)).cause;
}

/// Concludes a task that is not to run. Returns whether it did.
bool Scheduler::State::conclude_if_not_to_run(model::TaskIndex task, model::Decision& out) {
  switch (fate_of(task)) {
    case Fate::Skipped:
      conclude_waiting(task, {.verdict = model::Verdict::Skipped, .message = why_skipped(task)},
                       out);
      return true;
    case Fate::NotNeeded:
      conclude_waiting(task,
                       {.verdict = model::Verdict::NotNeeded,
                        .message = "nothing that it needs failed (if: failure())"},
                       out);
      return true;
    case Fate::Open:
    case Fate::Runs:
      break;
  }
  return false;
}

bool Scheduler::State::stands_aside(model::TaskIndex task) const {
  return on_hold_.contains(task) || needs_.of(task).open > 0;
}

void Scheduler::State::stand_aside(model::TaskIndex task, model::Decision& out) {
  const model::ShapeIndex shape = tasks[task].shape;
  aside_[shape].insert(task);
  settle_reason(shape, out);
}

bool Scheduler::State::leave_aside(model::TaskIndex task) {
  const auto found = aside_.find(tasks[task].shape);
  if (found == aside_.end() || found->second.erase(task) == 0) return false;
  if (found->second.empty()) aside_.erase(found);
  return true;
}

/// The tasks of a group that stand aside; they do no more. In order.
std::vector<model::TaskIndex> Scheduler::State::take_aside(model::GroupIndex group) {
  std::vector<model::TaskIndex> taken;
  std::erase_if(aside_, [&](const auto& of_shape) {
    if (shapes_[of_shape.first.value].group != group) return false;
    taken.insert(taken.end(), of_shape.second.begin(), of_shape.second.end());
    return true;
  });
  std::ranges::sort(taken);
  return taken;
}

/// Why those of a shape that stand aside do so: one that is not on hold speaks for them. Those that
/// are on hold have a reason of their own in `status`, whatever else they would wait for.
model::Reason Scheduler::State::reason_aside(model::ShapeIndex shape) const {
  const bool all_on_hold = std::ranges::all_of(
      aside_.at(shape), [this](model::TaskIndex task) { return on_hold_.contains(task); });
  if (all_on_hold) return {.cause = model::Cause::Held, .needs = {}};
  std::string names;
  for (const model::GroupIndex needed : groups_.planned(shapes_[shape.value].group).needs_by_task) {
    names += fmt::format("{}'{}'", names.empty() ? "" : ", ", groups_.planned(needed).shown());
  }
  return {.cause = model::Cause::Needs, .needs = {}, .groups = std::move(names)};
}

bool Scheduler::State::settle_needs(Instant at, model::Decision& out) {
  bool some_wait = false;
  // Other tasks may need a task that is skipped here: it is one of the next then.
  while (const std::optional<model::TaskIndex> concluded = needs_.next_concluded()) {
    for (const model::TaskNeed& need : needs_.needed_by(*concluded)) {
      if (interrupts_ == 0) some_wait = look_again_at(need.task, out) || some_wait;
    }
  }
  // The time that some of them wait for may be past.
  if (some_wait) come_back(at);
  return some_wait;
}

/// Decides again after a change of the tasks that this one needs. Returns true if it now waits for
/// room.
bool Scheduler::State::look_again_at(model::TaskIndex task, model::Decision& out) {
  const model::GroupIndex group = group_of(task);
  if (tasks[task].verdict != model::Verdict::None) return false;
  if (groups_.phase(group) != model::GroupPhase::Running) return false;
  const model::ShapeIndex shape = tasks[task].shape;
  const auto of_shape = aside_.find(shape);
  const bool aside = of_shape != aside_.end() && of_shape->second.contains(task);
  if (is_not_to_run(task)) {
    // A task that runs or waits had all that it needs when it began to, and goes on.
    const bool went_on = running_.contains(task) || delayed_.holds(task) || waiting_.holds(task);
    if (went_on) return false;
    leave_aside(task);
    conclude_if_not_to_run(task, out);
    leave_trial(task, out);
    settle_reason(shape, out);
    close_group_if_over(group, out);
    return false;
  }
  if (!aside || stands_aside(task)) return false;
  leave_aside(task);
  wait_to_start(task, out);
  settle_reason(shape, out);
  fresh_lanes_ = true;
  return true;
}

void Scheduler::State::hold_asked(const model::HoldAsked& event, model::Decision& out) {
  const model::TaskIndex task = event.task;
  const bool waits = interrupts_ == 0 && tasks.knows(task) &&
                     tasks[task].verdict == model::Verdict::None && !running_.contains(task);
  const bool done = waits && on_hold_.contains(task) != event.hold;
  out.commands.emplace_back(model::Answer{.request = event.request, .done = done});
  if (!done) return;
  if (event.hold) {
    on_hold_.insert(task);
    if (take_out(task)) stand_aside(task, out);
  } else {
    on_hold_.erase(task);
    const bool aside = leave_aside(task);
    if (aside && stands_aside(task)) {
      stand_aside(task, out);
    } else if (aside) {
      wait_to_start(task, out);
      fresh_lanes_ = true;
    }
  }
  settle_reason(tasks[task].shape, out);
  tell_what_is_said(task, out);
}

/// Takes a task out of its wait for room or for a time; its request and the time of its retry are
/// kept. Returns whether it waited.
bool Scheduler::State::take_out(model::TaskIndex task) {
  std::optional<Bytes> memory;
  if (const std::optional<DelayedTries::Waiting> delayed = delayed_.remove(task)) {
    leave_not_yet(task);
    if (tasks[task].status == Status::Interrupt) retry_at_[task] = delayed->at;
    memory = delayed->memory;
  } else if (waiting_.holds(task)) {
    memory = waiting_.remove(task).memory;
    passed_.erase(task);
  }
  if (!memory) return false;
  retry_requests_.raise(task, shape_of(task).terms, {.memory = *memory});
  return true;
}

void Scheduler::State::priority_asked(const model::PriorityAsked& event, model::Decision& out) {
  const model::TaskIndex task = event.task;
  const bool done =
      interrupts_ == 0 && tasks.knows(task) && tasks[task].verdict == model::Verdict::None;
  out.commands.emplace_back(model::Answer{.request = event.request, .done = done});
  if (!done) return;
  priorities_[task] = event.priority;
  for (WaitingRoom* const room : {&waiting_, &loaded_}) {
    const bool stands = room->holds(task);
    const model::Request request = stands ? room->remove(task) : model::Request{};
    const bool has_loaded = stands && room == &loaded_;
    const auto machine = has_loaded ? running_.at(task).site.machine : model::MachineIndex{};
    room->set_priority(task, event.priority);
    if (stands) room->add(task, tasks[task].shape, group_of(task), request, machine);
  }
  out_of_order_ = true;
  tell_what_is_said(task, out);
}

int Scheduler::State::priority_of(model::TaskIndex task) const {
  const auto said = priorities_.find(task);
  return said == priorities_.end() ? shape_of(task).terms.priority : said->second;
}

/// Adds the hold and the priority of a task to the changes, so that the journal keeps them for a
/// run that is resumed.
void Scheduler::State::tell_what_is_said(model::TaskIndex task, model::Decision& out) const {
  model::SaidOfTask said{.task = task, .on_hold = on_hold_.contains(task), .priority = {}};
  const auto priority = priorities_.find(task);
  if (priority != priorities_.end()) said.priority = priority->second;
  out.changes.emplace_back(said);
}

}  // namespace trainyard::schedule

// The part of the scheduler that tries one task of a group before the others: what is wrong with
// all of them costs one then, and not forty.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
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
#include "model/waiting.h"
#include "schedule/ending.h"
#include "schedule/scheduler.h"
#include "schedule/state.h"

namespace trainyard::schedule {

/// The tasks that wait for the one that runs first. Before that one is chosen, all tasks that are
/// to run.
std::vector<model::TaskIndex> Scheduler::State::held_of(model::GroupIndex group) const {
  const auto trial = trials_.find(group);
  std::vector<model::TaskIndex> held;
  const auto [first, last] = groups_.members(group);
  for (model::TaskIndex task = first; task < last; ++task.value) {
    const bool tried = trial != trials_.end() && trial->second.task == task;
    if (!tried && tasks[task].verdict == model::Verdict::None) held.push_back(task);
  }
  return held;
}

bool Scheduler::State::is_tried_first(model::TaskIndex task) const {
  const auto trial = trials_.find(group_of(task));
  return trial != trials_.end() && trial->second.task == task;
}

bool Scheduler::State::is_held(model::TaskIndex task) const {
  const auto trial = trials_.find(group_of(task));
  return trial != trials_.end() && trial->second.task != task;
}

bool Scheduler::State::holds_any(model::ShapeIndex shape) const {
  const model::GroupIndex group = shapes_[shape.value].group;
  return trials_.contains(group) && std::ranges::any_of(held_of(group), [&](model::TaskIndex task) {
           return tasks[task].shape == shape;
         });
}

bool asks_for_less(const model::Request& one, const model::Request& other) {
  const auto size = [](const model::Request& request) {
    return std::tuple(model::wants_whole_gpus(request) ? request.gpus : 0,
                      request.gpu_memory.count * request.gpus, request.memory);
  };
  return size(one) < size(other);
}

/// The largest is tried; of several the first in the job file. It stands for the others: where it
/// finds room and memory they do.
void Scheduler::State::begin_trial(model::GroupIndex group, model::Decision& out) {
  std::vector<model::TaskIndex> open = held_of(group);
  std::erase_if(open, [this](model::TaskIndex each) { return is_not_to_run(each); });
  if (open.empty()) return;
  // The request for all phases, with the amounts that earlier attempts raised.
  const auto whole_request_of = [this](model::TaskIndex each) {
    model::Request request = gpu_request_of(each);
    request.memory = retry_requests_.memory_of(each).value_or(shape_of(each).terms.request.memory);
    return request;
  };
  const model::TaskIndex task = *std::ranges::max_element(open, asks_for_less, whole_request_of);
  trials_[group] = {.task = task, .told_since = {}};
  wait_to_start(task, out);
  tell_of_trial(group, trials_[group], out);
}

void Scheduler::State::wait_to_start(model::TaskIndex task, model::Decision& out) {
  if (stands_aside(task)) return stand_aside(task, out);
  // A task that this one needs has just failed: settle_needs() ends it in this turn.
  if (is_not_to_run(task)) return;
  // A time in the past is added to delayed_, too, which is checked later in the same turn.
  const Bytes memory =
      retry_requests_.take_memory(task).value_or(shape_of(task).terms.request.memory);
  if (const auto retry_at = retry_at_.extract(task)) {
    return delayed_.add(task, retry_at.mapped(), memory);
  }
  // start-after delays the first attempt alone.
  const bool first = tasks[task].status != Status::Interrupt;
  if (first && shape_of(task).terms.start_after > Duration{0}) {
    const model::ShapeIndex shape = tasks[task].shape;
    delayed_.add(task, start_of(shape), memory);
    ++not_yet_in_[shape];
    return settle_reason(shape, out);
  }
  waiting_.add(task, tasks[task].shape, group_of(task), request_to_start(task, memory));
}

/// The others begin.
void Scheduler::State::end_trial(model::GroupIndex group, model::Decision& out) {
  const model::TaskIndex tried = trials_.at(group).task;
  const std::vector<model::TaskIndex> held = held_of(group);
  trials_.erase(group);
  // The estimates have nothing yet of a task that still runs, and the others need as much as it has
  // by now.
  if (const auto running = running_.find(tried); running != running_.end()) {
    const Bytes peak = book_of(running->second).gpus.peak_of(tried);
    const bool capped = running->second.is_near_its_cap(peak);
    estimates_.took_of_gpu(group, shape_of(tried).terms.request.gpu_memory,
                           capped ? Bytes{} : peak);
  }
  for (const model::TaskIndex task : held) wait_to_start(task, out);
  fresh_lanes_ = true;
  out_of_order_ = true;
  // They are looked at in this turn, but for those that come too far behind.
  for (const model::TaskIndex task : held) {
    const model::ShapeIndex shape = tasks[task].shape;
    if (reasons_[shape.value].cause == model::Cause::TriedFirst) {
      set_reason(shape, {.cause = model::Cause::Queued, .needs = {}}, out);
    }
  }
}

/// Handles a failure of the first task. If it says nothing about the others, the next one is tried.
void Scheduler::State::fail_trial(const Running& running, const Ending& ending,
                                  model::Decision& out) {
  const model::TaskIndex task = running.key.task;
  const model::GroupIndex group = group_of(task);
  if (!is_tried_first(task)) return;
  const bool of_its_own = ending.failure != model::Failure::Lost &&
                          running.cause != StopCause::NoGpu && running.kill_requests.empty();
  if (!of_its_own) return leave_trial(task, out);
  const std::string why =
      fmt::format("the task that 'try-first' ran first failed: {}", ending.message);
  for (const model::TaskIndex other : take_waiting(group)) {
    conclude_waiting(other,
                     {.verdict = model::Verdict::Skipped, .message = why, .with_group = true}, out);
  }
  for (std::uint32_t index = 0; index < shapes_.size(); ++index) {
    if (shapes_[index].group == group) set_reason({index}, {}, out);
  }
}

/// A task has its verdict without having been judged by its attempt: another one is tried, or no
/// task waits for it any more.
void Scheduler::State::leave_trial(model::TaskIndex task, model::Decision& out) {
  const model::GroupIndex group = group_of(task);
  const auto trial = trials_.find(group);
  if (trial == trials_.end()) return;
  const std::vector<model::TaskIndex> held = held_of(group);
  if (trial->second.task != task) {
    if (held.empty()) trials_.erase(trial);
    return;
  }
  if (held.size() == 1) return end_trial(group, out);
  trials_.erase(trial);
  begin_trial(group, out);
}

/// The start of its training, unless it was asked to end.
std::optional<Instant> Scheduler::State::lives_since(const Trial& trial) const {
  const auto found = running_.find(trial.task);
  if (found == running_.end()) return std::nullopt;
  const Running& running = found->second;
  const bool lives = running.seen && running.cause == StopCause::None && !running.word;
  return lives ? running.training_since : std::nullopt;
}

bool Scheduler::State::end_long_trials(Instant at, model::Decision& out) {
  std::vector<model::GroupIndex> over;
  for (const auto& [group, trial] : trials_) {
    const std::optional<Instant> since = lives_since(trial);
    if (since && at - *since >= policy_.try_first_time) over.push_back(group);
  }
  for (const model::GroupIndex group : over) end_trial(group, out);
  return !over.empty();
}

void Scheduler::State::progressed(Instant at, const model::Progressed& event,
                                  model::Decision& out) {
  const auto running = running_.find(event.key.task);
  if (running == running_.end() || running->second.key != event.key) return;
  // A task that reports its progress has what it needs of its GPUs.
  if (running->second.training_since) {
    book_of(running->second).gpus.settle(event.key.task);
    if (event.fraction) paces_.progressed(event.key.task, *event.fraction, at);
  }
  if (!is_tried_first(event.key.task)) return;
  const model::GroupIndex group = group_of(event.key.task);
  // The progress of loading says nothing about its training.
  if (lives_since(trials_.at(group))) end_trial(group, out);
}

void Scheduler::State::tell_of_trials(model::Decision& out) {
  for (auto& [group, trial] : trials_) {
    const std::optional<Instant> since = lives_since(trial);
    if (since == trial.told_since) continue;
    trial.told_since = since;
    tell_of_trial(group, trial, out);
  }
}

/// Says of the kinds of tasks that wait for it why they do.
void Scheduler::State::tell_of_trial(model::GroupIndex group, const Trial& trial,
                                     model::Decision& out) {
  for (const model::TaskIndex task : held_of(group)) {
    const model::ShapeIndex shape = tasks[task].shape;
    // Users have to know what the first task itself is short of.
    if (waits_in_a_room(shape)) continue;
    set_reason(shape,
               {.cause = model::Cause::TriedFirst,
                .needs = {},
                .first = trial.task,
                .first_since = trial.told_since},
               out);
  }
}

}  // namespace trainyard::schedule

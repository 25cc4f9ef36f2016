#include "schedule/task_table.h"

#include <algorithm>

#include "base/check.h"

namespace trainyard::schedule {
namespace {

Status status_with(model::Verdict before) {
  if (before == model::Verdict::Finished) return Status::Exited;
  return before == model::Verdict::Failed ? Status::Exception : Status::Init;
}

}  // namespace

void TaskTable::add(const model::PlannedTask& planned) {
  tasks_.push_back({.shape = planned.shape,
                    .first_attempt = planned.first_attempt,
                    .status = status_with(planned.before),
                    .verdict = planned.before});
  if (planned.is_open()) ++open_;
}

void TaskTable::reopen(model::TaskIndex task) {
  Task& state = tasks_[task.value];
  check(state.verdict != model::Verdict::None, "only a task that has ended begins anew");
  state.first_attempt = std::max(state.first_attempt, state.attempt + 1);
  state.attempt = 0;
  state.tries = {};
  state.status = Status::Init;
  state.verdict = model::Verdict::None;
  ++open_;
}

void TaskTable::enter(model::TaskIndex task, Status next) {
  Task& state = tasks_[task.value];
  check(state.verdict == model::Verdict::None, "a task that has ended stays as it is");
  check(model::may_follow(state.status, next), "a status follows an arrow of the picture");
  state.status = next;
}

std::uint32_t TaskTable::begin_attempt(model::TaskIndex task) {
  Task& state = tasks_[task.value];
  state.attempt = state.attempt == 0 ? state.first_attempt : state.attempt + 1;
  return state.attempt;
}

void TaskTable::take_back_attempt(model::TaskIndex task, Status before) {
  Task& state = tasks_[task.value];
  check(state.status == Status::Available && state.attempt >= state.first_attempt,
        "only an attempt that has just been begun is taken back");
  // A task that had none before begins with its first one again.
  state.attempt = state.attempt == state.first_attempt ? 0 : state.attempt - 1;
  state.status = before;
}

void TaskTable::take_back_training(model::TaskIndex task) {
  Task& state = tasks_[task.value];
  check(state.status == Status::Training, "only training that was just granted is taken back");
  state.status = Status::Waiting;
}

void TaskTable::count(model::TaskIndex task, Setback setback, Stage stage) {
  tasks_[task.value].tries.count(setback, stage);
}

void TaskTable::conclude(model::TaskIndex task, model::Verdict verdict) {
  Task& state = tasks_[task.value];
  check(state.verdict == model::Verdict::None && verdict != model::Verdict::None,
        "a task ends exactly once");
  state.verdict = verdict;
  --open_;
}

}  // namespace trainyard::schedule

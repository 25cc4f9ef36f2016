#include "schedule/task_table.h"

#include <cstdint>
#include <limits>
#include <vector>

#include "base/check.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/status.h"

namespace trainyard {

TaskTable::TaskTable(const std::vector<PlannedTask>& planned) {
  tasks_.reserve(planned.size());
  for (const PlannedTask& task : planned) {
    tasks_.push_back({.shape = task.shape,
                      .first_attempt = task.first_attempt,
                      .status = task.finished_before ? Status::Exited : Status::Init,
                      .verdict = task.finished_before ? Verdict::Finished : Verdict::None});
    if (!task.finished_before) ++open_;
  }
}

void TaskTable::enter(TaskIndex task, Status next) {
  Task& state = tasks_[task.value];
  check(state.verdict == Verdict::None, "a task that has ended stays as it is");
  check(may_follow(state.status, next), "a status follows an arrow of the picture");
  state.status = next;
}

std::uint32_t TaskTable::begin_attempt(TaskIndex task) {
  Task& state = tasks_[task.value];
  state.attempt = state.attempt == 0 ? state.first_attempt : state.attempt + 1;
  return state.attempt;
}

void TaskTable::count_try(TaskIndex task, Stage stage) {
  Task& state = tasks_[task.value];
  std::uint8_t& tries = stage == Stage::Load ? state.load_tries : state.train_tries;
  if (tries < std::numeric_limits<std::uint8_t>::max()) ++tries;
}

void TaskTable::take_back_try(TaskIndex task) {
  std::uint8_t& tries = tasks_[task.value].train_tries;
  check(tries > 0, "a try is taken back that was counted");
  --tries;
}

void TaskTable::conclude(TaskIndex task, Verdict verdict) {
  Task& state = tasks_[task.value];
  check(state.verdict == Verdict::None && verdict != Verdict::None, "a task ends exactly once");
  state.verdict = verdict;
  --open_;
}

}  // namespace trainyard

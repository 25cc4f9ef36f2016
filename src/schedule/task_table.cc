#include "schedule/task_table.h"

#include <cstdint>
#include <vector>

#include "base/check.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/status.h"
#include "schedule/another_try.h"

namespace trainyard::schedule {

void TaskTable::add(const model::PlannedTask& planned) {
  tasks_.push_back(
      {.shape = planned.shape,
       .first_attempt = planned.first_attempt,
       .status = planned.finished_before ? Status::Exited : Status::Init,
       .verdict = planned.finished_before ? model::Verdict::Finished : model::Verdict::None});
  if (!planned.finished_before) ++open_;
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

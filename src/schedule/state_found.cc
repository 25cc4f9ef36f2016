// The part of the scheduler that goes on with attempts of an earlier execution.
#include "base/time.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/status.h"
#include "schedule/scheduler.h"
#include "schedule/state.h"

namespace trainyard::schedule {

bool Scheduler::State::is_next(model::AttemptKey key) const {
  if (!tasks.knows(key.task) || running_.contains(key.task)) return false;
  const TaskTable::Task& known = tasks[key.task];
  return known.verdict == model::Verdict::None &&
         key.attempt == (known.attempt == 0 ? known.first_attempt : known.attempt + 1);
}

bool Scheduler::State::can_go_on(const model::AttemptFound& found) const {
  const model::TaskIndex task = found.key.task;
  return interrupts_ == 0 && is_next(found.key) && !shape_of(task).terms.two_phase &&
         groups_.phase(group_of(task)) == model::GroupPhase::Running &&
         !machines_.at(found.site.machine.value).is_gone;
}

/// The attempt keeps its reservation, whatever would be reserved now.
void Scheduler::State::attempt_found(Instant at, const model::AttemptFound& event,
                                     model::Decision& out) {
  const model::TaskIndex task = event.key.task;
  if (!can_go_on(event)) {
    // The tasks that its group needs may have started over. The next attempt has another number.
    if (is_next(event.key)) tasks.begin_attempt(task);
    out.commands.emplace_back(model::StopAttempt{.key = event.key, .kill = true});
    return;
  }
  // Another one of its group has been tried before.
  if (is_held(task)) end_trial(group_of(task), out);
  if (!take_out(task)) leave_aside(task);
  // The request of the retry is computed from the reservation.
  retry_requests_.take_memory(task);
  Running& running = begin_attempt(
      task, {.asked = event.promise, .given = event.promise, .site = event.site}, at, out);
  running.started = event.since;
  running.training_since = event.since;
  running.time_left = time_limit_of(task) - (at - event.since);
  running.gpu_memory_max = event.gpu_memory_max;
  std::get<model::StartAttempt>(out.commands.back()).gpu_memory_max = event.gpu_memory_max;
  settle_reason(tasks[task].shape, out);
}

}  // namespace trainyard::schedule

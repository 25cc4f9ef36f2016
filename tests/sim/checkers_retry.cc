// The expected state of a task that begins anew on a user's request.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>

#include "base/bytes.h"
#include "base/time.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/resources.h"
#include "model/status.h"
#include "model/terms.h"
#include "sim/checkers.h"
#include "sim/faults.h"
#include "sim/outside.h"

namespace trainyard::sim {

void Checkers::retry_asked(const model::RetryAsked& news) {
  ++requests_;
  const bool may = may_begin_anew(news.task);
  counts_.count(may ? Fault::RetryOfEnded : Fault::RetryRefused);
  answers_due_[news.request] = may;
  if (may) retry_of_ = news;
}

bool Checkers::may_begin_anew(model::TaskIndex index) const {
  if (outside_.interrupts > 0 || index.value >= outside_.tasks.size()) return false;
  const SeenTask& task = outside_.task(index);
  if (task.verdict == model::Verdict::None || task.verdict == model::Verdict::Finished) {
    return false;
  }
  const SeenGroup& group = outside_.groups[task.group.value];
  const bool ending = group.tripped && group.phase == model::GroupPhase::Running;
  return outside_.fate_of(index) != Outside::Fate::Skipped && !ending;
}

/// For a task that was not needed, behind tasks that have yet to end.
bool Checkers::may_be_needed_now(model::TaskIndex index) const {
  const SeenTask& task = outside_.task(index);
  if (task.verdict != model::Verdict::NotNeeded) return false;
  const auto& needs = outside_.plan.groups[task.group.value].needs;
  return outside_.needs_open_tasks(index) ||
         std::ranges::any_of(needs, [this](model::GroupIndex needed) {
           const model::GroupPhase phase = outside_.groups[needed.value].phase;
           return phase == model::GroupPhase::Blocked || phase == model::GroupPhase::Running;
         });
}

void Checkers::began_anew(const model::TaskChanged& change) {
  const model::TaskIndex index = change.key.task;
  const std::optional<model::RetryAsked> due = std::exchange(retry_of_, std::nullopt);
  const model::RetryAsked asked = due.value_or(model::RetryAsked{});
  expect_of(index, due ? asked.task == index : may_be_needed_now(index),
            "begins anew when somebody asks for it, once, or with what it needs");
  expect_of(index, change.key.attempt == 0 && change.message.empty(), "begins as one that is new");
  if (complaint_) return;
  SeenTask& task = outside_.task(index);
  const std::uint32_t next = task.next_attempt;
  const int priority = task.priority;
  const int refusals = task.refusals;
  task = outside_.begun(task.shape, next);
  task.priority = priority;
  task.refusals = refusals;
  // The number of its attempt is not the first one of the plan.
  task.again = true;
  const model::Terms& terms = outside_.shape_of(index).terms;
  const bool of_host = asked.memory > task.request.memory;
  if (of_host) task.request.memory = asked.memory;
  const bool counted = terms.request.gpu_memory > Bytes{} || terms.learns_gpu_memory;
  const bool of_gpu =
      counted && terms.request.gpus > 0 && asked.gpu_memory > terms.request.gpu_memory;
  if (of_gpu) {
    task.gpu_request.gpu_memory = asked.gpu_memory;
    task.gpu_memory_most = asked.gpu_memory;
    if (!outside_.two_phase(index)) task.request.gpu_memory = asked.gpu_memory;
  }
  if (asked.time_limit > Duration{0}) outside_.time_limits[index] = asked.time_limit;
  if (of_gpu || of_host) {
    reached_due_ = what_is_reached(index, task.request.memory);
  }
  ++outside_.waiting_in[task.shape.value];
  SeenGroup& group = outside_.groups[task.group.value];
  ++group.open;
  if (group.phase == model::GroupPhase::Running && !outside_.is_held(index)) {
    outside_.begin_to_wait(index);
  }
}

bool Checkers::may_be_blocked_again(const SeenGroup& group) const {
  return std::holds_alternative<model::RetryAsked>(event_->what) && group.open > 0 &&
         group.phase != model::GroupPhase::Blocked && group.phase != model::GroupPhase::Running;
}

}  // namespace trainyard::sim

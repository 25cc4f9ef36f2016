#include "wire/events.h"

#include <optional>
#include <utility>
#include <variant>

#include "base/time.h"
#include "model/status.h"
#include "model/waiting.h"
#include "wire/model_fields.h"
#include "wire/plan_check.h"
#include "wire/struct_fields.h"
#include "wire/value_reader.h"
#include "wire/value_writer.h"

namespace trainyard::wire {

template <>
inline std::string_view word_of(Status value) {
  return trainyard::to_text(value);
}
template <>
inline std::string_view word_of(model::Failure value) {
  return model::to_text(value);
}
template <>
inline std::string_view word_of(model::Cause value) {
  return model::to_text(value);
}
TRAINYARD_WORDS(Stage, (Load, "load"), (Train, "train"));
TRAINYARD_WORDS(model::GroupPhase, (Blocked, "blocked"), (Running, "running"),
                (Finished, "finished"), (Failed, "failed"), (Skipped, "skipped"),
                (Stopped, "stopped"));

TRAINYARD_ALTERNATIVE("task", model::TaskChanged, key, status, verdict, failure, stage, exit_code,
                      message, retry_at, with_group);
TRAINYARD_ALTERNATIVE("group", model::GroupChanged, group, phase, message);
TRAINYARD_FIELDS(model::Reason, cause, needs, parallel_max, groups, refusal, first, first_since,
                 not_before, machine, per_gpu_measured, own_until_known, gpu_memory_seen);
TRAINYARD_ALTERNATIVE("reason", model::ReasonChanged, shape, reason);
TRAINYARD_FIELDS(model::Headroom::Card, label, present, whole, holders, tasks, utilization,
                 tasks_max, free, of_others, lingering, avoided_for, uuid, drained, name,
                 last_resort);
TRAINYARD_FIELDS(model::Headroom, at, memory_free, memory_held, memory_of_others, memory_kept_free,
                 memory_kept_by, holders, cpus, cpus_free, cpu_holders, cpu_used_by_others,
                 cpu_utilization_max, gpu_utilization_max, processes_max, processes_reason, ahead,
                 waiting_max, try_first_time, gpus, neighbours, gpus_max, gpus_max_until, disk_free,
                 disk_promised, disk_holders);
TRAINYARD_ALTERNATIVE("headroom", model::HeadroomSeen, headroom, machine);
TRAINYARD_ALTERNATIVE("learned", model::Learned, shape, memory, gpu_memory, tasks);
TRAINYARD_FIELDS(model::Decision, changes, commands);

TRAINYARD_WORDS(model::GpuStrategy, (Pci, "pci"), (TotalMemory, "total_memory"),
                (RemainingMemory, "remaining_memory"), (Performance, "performance"),
                (BestFit, "best_fit"), (IdleFirst, "idle_first"));
TRAINYARD_FIELDS(model::Policy, cpu_utilization_max, memory_utilization_max, memory_remain,
                 gpu_strategy, gpu_reverse, gpu_avoids_others, gpu_memory_utilization_max,
                 gpu_utilization_max, gpu_memory_remain, gpu_memory_least, processes_max,
                 waiting_max, load_retries, train_retries, machine_patience, auto_adjust,
                 looks_ahead, stop_grace, passes_max, passed_time_max, watches_memory,
                 kernel_keeps_limits, gpu_linger_max, gpu_settle_max, gpu_gone_max,
                 gpu_steady_after, try_first_time);

namespace {

/// Checks that there is a plan, and that it is valid: the types of the members do not say so.
void look_at_batch(const model::BatchAdded& batch, ValueReader& from) {
  if (batch.plan == nullptr) return from.fail("batch_added.plan: is missing");
  const std::optional<Error> fault = fault_of(*batch.plan);
  if (fault) from.fail("batch_added.plan." + fault->message);
}

}  // namespace

std::string to_text(const model::Event& event) {
  const auto& [at, what] = event;
  std::string text = "{";
  if (at != Instant{}) {
    append_name(text, "at");
    append_value(text, at);
  }
  append_alternative(text, what);
  text += '}';
  return text;
}

Result<model::Event> event_from_text(std::string_view text) {
  ValueReader from(text);
  model::Event event;
  auto& [at, what] = event;
  from.read_member(from.whole(), "at", at);
  from.read_alternative(from.whole(), what);
  if (const auto* const batch = std::get_if<model::BatchAdded>(&what)) {
    if (!from.failed()) look_at_batch(*batch, from);
  }
  return std::move(from).give(std::move(event), "event");
}

std::string to_text(const model::Decision& decision) {
  std::string text;
  append_value(text, decision);
  return text;
}

std::string to_text(const model::Policy& policy) {
  std::string text;
  append_value(text, policy);
  return text;
}

Result<model::Policy> policy_from_text(std::string_view text) {
  ValueReader from(text);
  model::Policy policy;
  from.read(from.whole(), policy);
  return std::move(from).give(policy, "policy");
}

}  // namespace trainyard::wire

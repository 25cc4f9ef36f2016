#include "wire/decisions.h"

#include <string_view>

#include "model/status.h"
#include "model/waiting.h"
#include "wire/model_fields.h"
#include "wire/struct_fields.h"
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
                      message);
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

std::string to_text(const model::Decision& decision) {
  std::string text;
  append_value(text, decision);
  return text;
}

}  // namespace trainyard::wire

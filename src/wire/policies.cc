#include "wire/policies.h"

#include <utility>

#include "wire/model_fields.h"
#include "wire/struct_fields.h"
#include "wire/value_reader.h"
#include "wire/value_writer.h"

namespace trainyard::wire {

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

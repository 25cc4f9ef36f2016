#include "wire/policies.h"

#include <tuple>
#include <utility>

#include "wire/resource_fields.h"
#include "wire/struct_fields.h"
#include "wire/value_reader.h"
#include "wire/value_writer.h"

namespace trainyard::wire {

template <>
constexpr std::string_view word_of(model::GpuStrategy value) {
  switch (value) {
    case model::GpuStrategy::Pci:
      return "pci";
    case model::GpuStrategy::TotalMemory:
      return "total_memory";
    case model::GpuStrategy::RemainingMemory:
      return "remaining_memory";
    case model::GpuStrategy::Performance:
      return "performance";
    case model::GpuStrategy::BestFit:
      return "best_fit";
    case model::GpuStrategy::IdleFirst:
      return "idle_first";
  }
  return {};
}

template <>
inline constexpr auto kFields<model::Policy> =
    std::tuple(field("cpu_utilization_max", &model::Policy::cpu_utilization_max),
               field("memory_utilization_max", &model::Policy::memory_utilization_max),
               field("memory_remain", &model::Policy::memory_remain),
               field("gpu_strategy", &model::Policy::gpu_strategy),
               field("gpu_reverse", &model::Policy::gpu_reverse),
               field("gpu_avoids_others", &model::Policy::gpu_avoids_others),
               field("gpu_memory_utilization_max", &model::Policy::gpu_memory_utilization_max),
               field("gpu_utilization_max", &model::Policy::gpu_utilization_max),
               field("gpu_memory_remain", &model::Policy::gpu_memory_remain),
               field("gpu_memory_least", &model::Policy::gpu_memory_least),
               field("processes_max", &model::Policy::processes_max),
               field("waiting_max", &model::Policy::waiting_max),
               field("load_retries", &model::Policy::load_retries),
               field("train_retries", &model::Policy::train_retries),
               field("machine_patience", &model::Policy::machine_patience),
               field("auto_adjust", &model::Policy::auto_adjust),
               field("looks_ahead", &model::Policy::looks_ahead),
               field("stop_grace", &model::Policy::stop_grace),
               field("passes_max", &model::Policy::passes_max),
               field("passed_time_max", &model::Policy::passed_time_max),
               field("watches_memory", &model::Policy::watches_memory),
               field("kernel_keeps_limits", &model::Policy::kernel_keeps_limits),
               field("gpu_linger_max", &model::Policy::gpu_linger_max),
               field("gpu_settle_max", &model::Policy::gpu_settle_max),
               field("gpu_gone_max", &model::Policy::gpu_gone_max),
               field("gpu_steady_after", &model::Policy::gpu_steady_after),
               field("try_first_time", &model::Policy::try_first_time));

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

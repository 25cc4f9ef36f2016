#include "hardware/this_machine.h"

#include <utility>

#include <fmt/format.h>

#include "base/result.h"
#include "hardware/gpu_driver.h"
#include "sys/environment.h"

namespace trainyard::hardware {

namespace {

/// Lowers the capacity to the limits. A limit above the capacity changes nothing.
void keep_to(const MachineLimits& limits, CapacityReading& reading) {
  model::Capacity& capacity = reading.capacity;
  if (limits.cpus && *limits.cpus < capacity.cpus) {
    capacity.cpus = *limits.cpus;
    reading.notes.push_back(
        fmt::format("'machines': {:.4g} CPUs", model::as_number(capacity.cpus)));
  }
  if (limits.memory && *limits.memory < capacity.memory) {
    capacity.memory = *limits.memory;
    reading.notes.push_back(fmt::format("'machines': {} of memory", to_text(capacity.memory)));
  }
}

}  // namespace

ThisMachine find_this_machine(const MachineLimits& limits) {
  Result<GpuWatch> watch =
      GpuWatch::start({.environment = sys::environment(), .only = limits.gpus});
  ThisMachine found{.reading = read_capacity()};
  keep_to(limits, found.reading);
  if (!watch) {
    found.reading.capacity.no_gpus_reason = watch.error().message;
    return found;
  }
  const GpuList& list = watch->list();
  found.reading.capacity.gpus = list.gpus;
  found.reading.capacity.no_gpus_reason = list.none_reason;
  if (limits.gpus && list.gpus.empty()) {
    found.hiding = {"CUDA_VISIBLE_DEVICES=-1", "HIP_VISIBLE_DEVICES=-1"};
  }
  for (const std::string& note : list.notes) found.reading.notes.push_back(note);
  if (!list.gpus.empty()) found.gpus = std::move(*watch);
  return found;
}

}  // namespace trainyard::hardware

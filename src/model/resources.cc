#include "model/resources.h"

#include <algorithm>
#include <string_view>

namespace trainyard::model {

bool is_called(const Gpu& gpu, std::string_view name) {
  return name == gpu.label() || name == std::to_string(gpu.number);
}

Capacity most_of(Capacity most, std::span<const NamedMachine> machines) {
  for (const NamedMachine& machine : machines) {
    const Capacity& one = machine.capacity;
    most.memory = std::max(most.memory, one.memory);
    most.cpus = std::max(most.cpus, one.cpus);
    if (one.gpus.size() > most.gpus.size()) most.gpus = one.gpus;
  }
  return most;
}

}  // namespace trainyard::model

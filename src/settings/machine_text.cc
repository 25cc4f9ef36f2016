#include "settings/machine_text.h"

#include <fmt/format.h>

#include "base/bytes.h"
#include "schedule/gpu_room.h"
#include "settings/configuration.h"

namespace trainyard::settings {

std::string machine_text(const model::Capacity& machine, const model::Policy& policy) {
  const Bytes given = memory_to_give(policy, machine);
  return fmt::format("machine: {} CPUs, {} of memory, {} available to tasks ({} stays free)\n",
                     model::as_number(machine.cpus), to_text(machine.memory), to_text(given),
                     to_text(machine.memory - given));
}

std::string gpus_text(const model::Capacity& machine, const model::Policy& policy) {
  std::string text;
  for (const model::Gpu& gpu : machine.gpus) {
    if (gpu.late) {
      text += fmt::format("GPU {} DOES NOT ANSWER: tasks can use it once it does\n", gpu.label());
      continue;
    }
    text += fmt::format("GPU {}: {}, {} of memory, {} available to tasks\n", gpu.label(), gpu.name,
                        to_text(gpu.memory),
                        to_text(gpu.memory - schedule::memory_kept_free(policy, gpu)));
  }
  return text;
}

}  // namespace trainyard::settings

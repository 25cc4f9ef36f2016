#include "config/machine_text.h"

#include <string>

#include <fmt/format.h>

#include "base/bytes.h"
#include "config/configuration.h"
#include "model/plan.h"
#include "model/resources.h"
#include "schedule/gpu_room.h"

namespace trainyard {

std::string machine_text(const Capacity& machine, const Limits& limits) {
  const Bytes given = memory_to_give(limits, machine);
  return fmt::format("machine: {} CPUs, {} of memory, of which tasks may have {} ({} stays free)\n",
                     static_cast<double>(machine.cpus.milli) / 1000, to_text(machine.memory),
                     to_text(given), to_text(machine.memory - given));
}

std::string gpus_text(const Capacity& machine, const Limits& limits) {
  std::string text;
  for (const Gpu& gpu : machine.gpus) {
    text +=
        fmt::format("GPU {}: {}, {} of memory, of which tasks may have {}\n", gpu.label(), gpu.name,
                    to_text(gpu.memory), to_text(gpu.memory - memory_kept_free(limits, gpu)));
  }
  return text;
}

}  // namespace trainyard

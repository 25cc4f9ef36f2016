#include "report/machine_text.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/bytes.h"
#include "report/planned_task.h"

namespace trainyard::report {
namespace {

/// "GPUs 0, 1, 2 (NVIDIA H100)", with each model that there is.
std::string gpus_text(const journal::MachineRow& machine) {
  if (machine.gpus.empty()) return "no GPU";
  std::string labels;
  std::vector<std::string_view> models;
  for (const journal::GpuRow& gpu : machine.gpus) {
    labels += fmt::format("{}{}", labels.empty() ? "" : ", ", gpu.label);
    const bool known = gpu.name.empty() || std::ranges::find(models, gpu.name) != models.end();
    if (!known) models.push_back(gpu.name);
  }
  std::string text = fmt::format("{} {}", machine.gpus.size() == 1 ? "GPU" : "GPUs", labels);
  if (!models.empty()) text += fmt::format(" ({})", fmt::join(models, ", "));
  return text;
}

}  // namespace

std::string machine_text(const journal::MachineRow& machine) {
  const double cpus = model::as_number(machine.cpus);
  return fmt::format("{:.4g} {}, {}, {}", cpus, cpus == 1 ? "CPU" : "CPUs", to_text(machine.memory),
                     gpus_text(machine));
}

}  // namespace trainyard::report

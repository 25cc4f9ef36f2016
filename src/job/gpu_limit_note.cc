#include "job/gpu_limit_note.h"

#include <algorithm>

#include <fmt/format.h>

namespace trainyard::job {

std::optional<std::string> gpu_limit_note(const model::Plan& plan, const model::GpuLimits& limits) {
  if (!limits.usual) return std::nullopt;
  int most = *limits.usual;
  for (const model::GpuHours& hours : limits.hours) most = std::max(most, hours.gpus_max);
  const auto beyond = std::ranges::find_if(
      plan.shapes, [most](const model::Shape& it) { return it.terms.request.gpus > most; });
  if (beyond == plan.shapes.end()) return std::nullopt;
  return fmt::format(
      "group '{}': a task needs {}, but limits.gpus allows all of your runs {} together: the task "
      "waits until you change that",
      plan.groups[beyond->group.value].name,
      beyond->terms.request.gpus == 1 ? "1 GPU"
                                      : fmt::format("{} GPUs", beyond->terms.request.gpus),
      most);
}

}  // namespace trainyard::job

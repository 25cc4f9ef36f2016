#include "job/gpu_variables.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/plan.h"
#include "model/resources.h"

namespace trainyard::job {

std::vector<std::pair<std::string, std::string>> gpu_variables(
    const std::vector<model::Gpu>& of_machine, const model::Shape& shape,
    const std::vector<model::Gpu>& gpus) {
  std::vector<std::pair<std::string, std::string>> variables;
  if (of_machine.empty()) return variables;
  const bool wants_some = shape.terms.request.gpus > 0;
  const bool amd = of_machine.front().maker == model::GpuMaker::Amd;
  std::string value;
  const auto add = [&value](const model::Gpu& gpu) {
    value += (value.empty() ? "" : ",") + gpu.uuid;
  };
  if (wants_some && shape.terms.two_phase) {
    // It is given no other, as it counts those that it sees when it begins.
    for (const model::Gpu& gpu : of_machine) {
      if (!gpu.late) add(gpu);
    }
  } else if (wants_some && gpus.empty()) {
    value = kChosenLater;
  } else if (wants_some) {
    std::ranges::for_each(gpus, add);
  } else {
    value = "-1";
  }
  variables.emplace_back(amd ? "HIP_VISIBLE_DEVICES" : "CUDA_VISIBLE_DEVICES", value);
  return variables;
}

std::optional<std::string> cannot_see_gpus(const model::Capacity& capacity,
                                           const model::Shape& shape) {
  const bool slices = std::ranges::any_of(
      capacity.gpus, [](const model::Gpu& gpu) { return gpu.slice.has_value(); });
  if (!shape.terms.two_phase || shape.terms.request.gpus == 0 || !slices ||
      capacity.gpus.size() == 1) {
    return std::nullopt;
  }
  return "a two-phase task sees all GPUs, and a program cannot see a MIG slice beside others: set "
         "CUDA_VISIBLE_DEVICES to one of them";
}

}  // namespace trainyard::job

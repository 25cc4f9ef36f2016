#include "job/gpu_variables.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include <fmt/format.h>

#include "job/job_binding.h"
#include "model/terms.h"

namespace trainyard::job {

namespace {

constexpr const char* kDevices = "CUDA_VISIBLE_DEVICES";
constexpr const char* kOrder = "CUDA_DEVICE_ORDER";
constexpr const char* kBusOrder = "PCI_BUS_ID";

/// The variable by which a task chooses its GPUs itself; null: it sets none.
const std::string* chooses_gpus_by(const GroupSpec& group, const TaskSpec& task) {
  constexpr std::array<std::string_view, 3> kNames{kDevices, "HIP_VISIBLE_DEVICES",
                                                   "ROCR_VISIBLE_DEVICES"};
  for (const Wants* const wants : {&task.wants, &group.wants}) {
    for (const auto& [name, text] : wants->environment) {
      if (std::ranges::find(kNames, name) != kNames.end()) return &name;
    }
  }
  return nullptr;
}

}  // namespace

GpuNaming naming_of_gpus(const Variables& said, bool is_renumbered) {
  const std::string* const order = find_variable(said, kOrder);
  const bool counts_otherwise = order != nullptr && *order != kBusOrder;
  // Numbers that a task sets itself count in the order that it expects, which must not change.
  const bool sets_devices = find_variable(said, kDevices) != nullptr;
  return is_renumbered || counts_otherwise || sets_devices ? GpuNaming::ByUuid
                                                           : GpuNaming::ByNumber;
}

std::vector<std::pair<std::string, std::string>> gpu_variables(
    const std::vector<model::Gpu>& of_machine, const model::Shape& shape,
    const std::vector<model::Gpu>& gpus, GpuNaming naming) {
  std::vector<std::pair<std::string, std::string>> variables;
  if (of_machine.empty()) return variables;
  const bool wants_some = shape.terms.request.gpus > 0;
  const bool amd = of_machine.front().maker == model::GpuMaker::Amd;
  const bool by_number =
      naming == GpuNaming::ByNumber && !amd &&
      std::ranges::all_of(of_machine, &std::optional<int>::has_value, &model::Gpu::cuda_number) &&
      std::ranges::all_of(gpus, &std::optional<int>::has_value, &model::Gpu::cuda_number);
  std::string value;
  const auto add = [&value, by_number](const model::Gpu& gpu) {
    value += value.empty() ? "" : ",";
    value += by_number ? std::to_string(*gpu.cuda_number) : gpu.uuid;
  };
  if (wants_some && shape.terms.two_phase) {
    // A later GPU is not assigned, as the task counts the GPUs that it sees when it begins.
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
  if (by_number && wants_some) variables.emplace_back(kOrder, kBusOrder);
  variables.emplace_back(amd ? "HIP_VISIBLE_DEVICES" : kDevices, value);
  return variables;
}

std::vector<std::string> gpu_variable_warnings(const JobSpec& spec, const model::Plan& plan,
                                               const std::vector<std::uint32_t>& group_starts) {
  std::vector<std::string> warnings;
  for (std::size_t number = 0; number < spec.groups.size(); ++number) {
    const GroupSpec& group = spec.groups[number];
    const auto chooses = [&group](const TaskSpec& task) { return chooses_gpus_by(group, task); };
    if (std::ranges::none_of(group.tasks, chooses)) continue;
    for (std::uint32_t i = 0; i < count_tasks(group); ++i) {
      const model::Terms& terms = plan.shape_of({group_starts[number] + i}).terms;
      if (terms.request.gpus == 0 || terms.two_phase) continue;
      const std::string* const name = chooses(group.tasks[origin_of(group, i).task]);
      if (name == nullptr) continue;
      warnings.push_back(
          fmt::format("group '{}': env sets {}, so tasks run on the GPUs that it names, and not on "
                      "those that are reserved for them; remove it",
                      group.name, *name));
      break;
    }
  }
  return warnings;
}

std::optional<std::string> cannot_see_gpus(const model::Capacity& capacity,
                                           const model::Shape& shape) {
  const bool slices = std::ranges::any_of(
      capacity.gpus, [](const model::Gpu& gpu) { return gpu.slice.has_value(); });
  if (!shape.terms.two_phase || shape.terms.request.gpus == 0 || !slices ||
      capacity.gpus.size() == 1) {
    return std::nullopt;
  }
  return "a two-phase task sees all GPUs, but a program can use only one MIG instance; set "
         "CUDA_VISIBLE_DEVICES to one of them";
}

}  // namespace trainyard::job

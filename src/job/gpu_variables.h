// The environment variables by which a task knows which GPUs are its own. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "job/job_spec.h"
#include "job/task_environment.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"

namespace trainyard::job {

/// Stands for a value that is not known when a task is only shown.
constexpr std::string_view kChosenLater = "<chosen when it starts>";

/// The form of GPU names in CUDA_VISIBLE_DEVICES. Programs call int() on it, but a number means
/// another GPU where CUDA counts other GPUs than the driver does.
enum class GpuNaming : std::uint8_t {
  ByNumber,  ///< By model::Gpu::cuda_number, with CUDA_DEVICE_ORDER; by UUID where one has none.
  ByUuid
};

/// `said` are the variables that a task sets itself. `is_renumbered`: a GPU has failed since the
/// driver counted them, or an MPS daemon counts for CUDA. By UUID in both cases, and for a task that
/// sets CUDA_VISIBLE_DEVICES or another CUDA_DEVICE_ORDER.
GpuNaming naming_of_gpus(const Variables& said, bool is_renumbered);

/// CUDA_VISIBLE_DEVICES, or HIP_VISIBLE_DEVICES with UUIDs on AMD's; nothing on a machine without
/// GPUs, where `of_machine` is empty. `gpus` are those of an attempt; empty for a task that is only
/// shown. A task of two phases is assigned its GPU once all is loaded, and sees all of them; a task
/// that wants none sees none.
std::vector<std::pair<std::string, std::string>> gpu_variables(
    const std::vector<model::Gpu>& of_machine, const model::Shape& shape,
    const std::vector<model::Gpu>& gpus, GpuNaming naming);

/// "group 'train': env sets CUDA_VISIBLE_DEVICES, so tasks run on the GPUs that it names, and not on
/// those that are reserved for them; remove it", for each group of which a task with GPUs sets such
/// a variable. Two-phase tasks may choose one. `group_starts` has the first task of each group.
/// Costs O(tasks) in groups that set one.
std::vector<std::string> gpu_variable_warnings(const JobSpec& spec, const model::Plan& plan,
                                               const std::vector<std::uint32_t>& group_starts);

/// The reason why a task of two phases cannot be assigned its GPU here; nothing if it can. It would
/// have to see all GPUs, and programs see one MIG slice and no other device.
std::optional<std::string> cannot_see_gpus(const model::Capacity& capacity,
                                           const model::Shape& shape);

}  // namespace trainyard::job

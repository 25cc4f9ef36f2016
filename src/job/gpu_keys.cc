#include "job/gpu_keys.h"

#include <string_view>

#include <fmt/format.h>

#include "base/bytes.h"
#include "job/job_binding.h"
#include "model/resources.h"

namespace trainyard::job {
namespace {

/// Whether a key about sharing a GPU has a meaning for a task.
bool is_of_use(TaskKey key, const model::Terms& terms) {
  const model::Request& request = terms.request;
  if (request.gpus == 0) return false;
  const bool shares = request.gpu_memory > Bytes{} || terms.learns_gpu_memory;
  return key != TaskKey::MaxPerGpu || shares || request.sharing.max_per_gpu <= 1;
}

/// Whether GPU memory is requested, but no GPU. A task that sets its own amount of GPU memory
/// overrides the group's.
bool contradicts_itself(const TaskSpec& task, const Asked& asked) {
  const bool memory =
      asked.gpu_memory && (asked.gpu_memory->learned || asked.gpu_memory->bytes > Bytes{});
  const bool off_gpus = asked.device && asked.device->cpu;
  const bool takes_back =
      task.wants.find(TaskKey::GpuMemory) != nullptr && task.wants.find(TaskKey::Gpus) == nullptr;
  return memory && asked.gpus == 0 && !off_gpus && !takes_back;
}

}  // namespace

void GpuKeys::see(const GroupSpec& group, const TaskSpec& task, const Asked& asked,
                  const model::Terms& terms) {
  const auto text_of = [&](TaskKey key) { return said(group, task, key); };
  const auto note = [&](TaskKey key, bool of_use) {
    const text::Place place = text_of(key)->place;
    Seen& seen =
        seen_.try_emplace({place.line, place.column, key}, Seen{.group = &group}).first->second;
    seen.of_use = seen.of_use || of_use;
    seen.on_gpu = seen.on_gpu || terms.request.gpus > 0;
  };
  for (const TaskKey key : {TaskKey::GpuMemoryLimit, TaskKey::GpuUtilization, TaskKey::MaxPerGpu}) {
    if (text_of(key) != nullptr) note(key, is_of_use(key, terms));
  }
  if (!asked.terms.request.where.gpu.empty()) {
    note(TaskKey::Where, terms.request.gpus > 0);
  }
  if (contradicts_itself(task, asked)) note(TaskKey::Gpus, false);
}

std::vector<GpuKeys::Mistake> GpuKeys::mistakes() const {
  std::vector<Mistake> found;
  for (const auto& [where, seen] : seen_) {
    if (seen.of_use) continue;
    const auto [line, column, key] = where;
    std::string_view why = "the task requests no GPU; 'gpu-memory' sets the memory it needs on one";
    if (seen.on_gpu) {
      why =
          "whole GPUs ('gpus') are not shared; to share one, set 'gpu-memory' to the memory needed";
    }
    if (key == TaskKey::Where) why = "'gpu' selects GPUs, but the task requests no GPU";
    if (key == TaskKey::Gpus) {
      why = "0 cannot be combined with 'gpu-memory'; to train on the CPUs, write 'device: cpu'";
    }
    found.push_back({.place = {.line = line, .column = column},
                     .group = seen.group,
                     .message = fmt::format("{}: {}", info_of(key).name, why)});
  }
  return found;
}

}  // namespace trainyard::job

#include "job/gpu_wish.h"

#include <algorithm>
#include <cmath>
#include <expected>
#include <string_view>

#include <fmt/format.h>

#include "job/job_binding.h"
#include "model/ids.h"
#include "schedule/gpu_room.h"

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

Result<void> add_gpus(const GpuWish& wish, Bytes usual, model::Request& request) {
  const bool wants_memory = wish.memory.learned || wish.memory.bytes > Bytes{};
  request.gpus = std::max(wish.gpus.value_or(0), wants_memory ? 1 : 0);
  request.gpu_memory = wish.memory.bytes;
  if (!wish.device) return {};
  if (wish.device->cpu) {
    if (request.gpus > 0 && !wish.device_goes_first) {
      return std::unexpected(Error{"'cpu' cannot be combined with a request for GPUs"});
    }
    request.gpus = 0;
    request.gpu_memory = {};
    return {};
  }
  if (wish.device->gpu && request.gpus > 1) {
    return std::unexpected(Error{fmt::format("names one GPU, but {} are requested", request.gpus)});
  }
  request.gpu = wish.device->gpu;
  if (request.gpus > 0) return {};
  if (wish.gpus && !wish.device_goes_first) {
    return std::unexpected(Error{"a GPU cannot be combined with 'gpus: 0'"});
  }
  request.gpus = 1;
  request.gpu_memory = usual;
  return {};
}

std::int64_t tasks_on_gpus(const model::Request& request, const model::Policy& policy,
                           const model::Capacity& capacity) {
  std::int64_t tasks = 0;
  const auto whole = static_cast<std::int64_t>(std::lround(1000 * policy.gpu_utilization_max));
  for (std::uint32_t i = 0; i < capacity.gpus.size(); ++i) {
    if (request.gpu && *request.gpu != model::GpuIndex{i}) continue;
    const model::Gpu& gpu = capacity.gpus[i];
    if (!request.where.takes_gpu(gpu.name)) continue;
    const Bytes room = gpu.memory - schedule::memory_kept_free(policy, gpu);
    if (room <= Bytes{}) continue;
    if (model::wants_whole_gpus(request)) {
      ++tasks;
      continue;
    }
    std::int64_t most = room.count / request.gpu_memory.count;
    const model::GpuSharing& sharing = request.sharing;
    if (sharing.max_per_gpu > 0) most = std::min<std::int64_t>(most, sharing.max_per_gpu);
    if (sharing.utilization > 0) {
      most = std::min(most, std::max<std::int64_t>(1, whole / sharing.utilization));
    }
    tasks += most;
  }
  return tasks / std::max(request.gpus, 1);
}

std::optional<model::Cpus> cpus_beside_gpus(const model::Request& request,
                                            const model::Policy& policy,
                                            const model::Capacity& capacity) {
  constexpr std::int64_t kLeastMilli = 250;
  const std::int64_t tasks = tasks_on_gpus(request, policy, capacity);
  if (tasks == 0) return std::nullopt;
  const std::int64_t most =
      capacity.cpus.milli * request.gpus / static_cast<std::int64_t>(capacity.gpus.size());
  // Hundredths read better, rounded down so that as many really fit.
  const std::int64_t hundredths = std::min(capacity.cpus.milli / tasks, most) / 10;
  return model::Cpus{std::max(10 * hundredths, kLeastMilli)};
}

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

#include "schedule/retry_requests.h"

#include <algorithm>
#include <utility>

namespace trainyard::schedule {

bool RetryRequests::raise(model::TaskIndex task, const model::Terms& terms,
                          const model::Reached& to) {
  const model::Request& written = terms.request;
  const bool of_host = to.memory > written.memory;
  if (of_host) tasks_[task].memory = to.memory;
  // A task with whole GPUs has more already.
  const bool whole = model::wants_whole_gpus(written) && !terms.learns_gpu_memory;
  const bool more = to.gpu_memory > written.gpu_memory && !whole;
  const bool of_gpu = written.gpus > 0 && (to.largest || more);
  if (of_gpu) {
    grow(task, {.each = to.largest ? Bytes{} : to.gpu_memory,
                .largest = to.largest,
                .most = to.gpu_memory});
  }
  return of_host || of_gpu;
}

void RetryRequests::avoid(model::TaskIndex task, model::GpuPlace gpu) {
  std::vector<model::GpuPlace>& gpus = tasks_[task].lost_on;
  if (std::ranges::find(gpus, gpu) == gpus.end()) gpus.push_back(gpu);
}

RetryRequests::Requests RetryRequests::of(model::TaskIndex task) const {
  const auto found = tasks_.find(task);
  return found == tasks_.end() ? Requests{} : found->second;
}

std::optional<Bytes> RetryRequests::take_memory(model::TaskIndex task) {
  const auto found = tasks_.find(task);
  if (found == tasks_.end()) return std::nullopt;
  return std::exchange(found->second.memory, std::nullopt);
}

void RetryRequests::apply(model::TaskIndex task, model::Request& request) const {
  const Requests requests = of(task);
  request.avoids = requests.lost_on;
  if (!requests.gpu) return;
  request.gpu_memory = requests.gpu->each;
  request.largest = requests.gpu->largest;
}

GrownGpu RetryRequests::gpu_after(const Running& running, Setback setback, const AnotherTry& next,
                                  Bytes most, bool has_hard_limit) const {
  const Bytes had = running.promise.gpu_memory;
  const Bytes most_so_far = std::max(had, gpu_of(running.key.task).most);
  const Bytes needed = running.needed.gpu_memory;
  if (setback != Setback::OutOfMemory || has_hard_limit) {
    const bool stays = has_hard_limit || had == Bytes{};
    const Bytes each = stays ? had : std::max(had, std::min(needed, most));
    return {.each = each, .largest = running.promise.largest, .most = std::max(most_so_far, each)};
  }
  if (next.number >= next.most || had == Bytes{} || had >= most) {
    return {.each = {}, .largest = true, .most = most_so_far};
  }
  const Bytes each = std::max(had, std::min(most, std::max(model::more_gpu_memory(had), needed)));
  return {.each = each, .largest = false, .most = std::max(most_so_far, each)};
}

void avoid_if_others_fit(model::Request& request, const model::Request& written,
                         std::span<const MachineBook> machines, const model::Policy& policy) {
  if (request.gpus == 0) return;
  const std::vector<model::GpuPlace> lost_on = request.avoids;
  for (const MachineBook& book : machines) {
    for (const model::GpuIndex gpu : book.gpus.last_resorts()) {
      request.avoids.push_back({.machine = book.index, .gpu = gpu});
    }
  }
  const auto others_fit = [&] {
    return std::ranges::any_of(machines, [&](const MachineBook& book) {
      return !book.is_gone && book.is_where(request.where) &&
             written.memory <= book.memory_most(policy) && written.cpus <= book.capacity.cpus &&
             book.chooser.choose(book.gpus.room_alone(), request).has_value();
    });
  };
  if (request.avoids.empty() || others_fit()) return;
  request.avoids = lost_on;
  if (!lost_on.empty() && !others_fit()) request.avoids.clear();
}

}  // namespace trainyard::schedule

#include "job/lack.h"

#include <utility>

#include "schedule/fits_nowhere.h"

namespace trainyard::job {
namespace {

TaskKey key_of(schedule::RequestPart part) {
  switch (part) {
    case schedule::RequestPart::Memory:
      return TaskKey::Memory;
    case schedule::RequestPart::Cpus:
      return TaskKey::Cpus;
    case schedule::RequestPart::Gpus:
      return TaskKey::Gpus;
    case schedule::RequestPart::GpuMemory:
      return TaskKey::GpuMemory;
    case schedule::RequestPart::Device:
      return TaskKey::Device;
    case schedule::RequestPart::Where:
      return TaskKey::Where;
  }
  std::unreachable();
}

}  // namespace

std::optional<Lack> find_lack(const model::Request& request, const LackBasis& basis) {
  std::optional<schedule::Misfit> misfit =
      basis.machines.empty()
          ? schedule::never_fits(request, basis.policy, basis.capacity, basis.here)
          : schedule::fits_nowhere(request, basis.policy, basis.machines, basis.here);
  if (!misfit) return std::nullopt;
  return Lack{.key = key_of(misfit->part), .why = std::move(misfit->why)};
}

std::optional<Lack> find_lack_of_retry(const model::Terms& terms, const RetryAmounts& amounts,
                                       const LackBasis& basis) {
  model::Request request = model::request_of(terms);
  const bool more_memory = amounts.memory > request.memory;
  const bool more_of_gpu = request.gpus > 0 && amounts.gpu_memory > request.gpu_memory;
  if (!more_memory && !more_of_gpu) return std::nullopt;
  if (more_memory) request.memory = amounts.memory;
  if (more_of_gpu) request.gpu_memory = amounts.gpu_memory;
  return find_lack(request, basis);
}

}  // namespace trainyard::job

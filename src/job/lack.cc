#include "job/lack.h"

#include <utility>

#include "model/site_wish.h"
#include "schedule/fits_nowhere.h"
#include "settings/configuration.h"

namespace trainyard::job {
namespace {

std::optional<std::string> why_never(const model::Request& request, const LackBasis& basis) {
  return basis.machines.empty()
             ? schedule::never_fits(request, basis.policy, basis.capacity, basis.here)
             : schedule::fits_nowhere(request, basis.policy, basis.machines, basis.here);
}

}  // namespace

std::optional<Lack> find_lack(const model::Request& request, const LackBasis& basis) {
  std::optional<std::string> why = why_never(request, basis);
  if (!why) return std::nullopt;
  TaskKey key = TaskKey::GpuMemory;
  const bool says_where = !basis.machines.empty() && !request.where.says_nothing();
  if (says_where && !schedule::is_somewhere(request.where, basis.policy, basis.machines)) {
    return Lack{.key = TaskKey::Where, .why = *std::move(why)};
  }
  if (request.memory > settings::memory_to_give(basis.policy, basis.capacity)) {
    key = TaskKey::Memory;
  } else if (request.cpus > basis.capacity.cpus) {
    key = TaskKey::Cpus;
  } else if (model::Request anywhere = request; !request.where.says_nothing()) {
    anywhere.where = {};
    if (!why_never(anywhere, basis)) key = TaskKey::Where;
  }
  if (key == TaskKey::GpuMemory && request.gpu) key = TaskKey::Device;
  return Lack{.key = key, .why = *std::move(why)};
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

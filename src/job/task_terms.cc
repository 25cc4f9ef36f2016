#include "job/task_terms.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"
#include "job/gpu_wish.h"
#include "job/term_text.h"
#include "model/plan.h"
#include "schedule/scheduler.h"
#include "settings/setting_value.h"

namespace trainyard::job {

model::Cpus default_cpus(const model::Terms& terms, const TermsBasis& basis) {
  const model::Request& request = terms.request;
  const model::Cpus each = model::cpus(model::processes_of(terms));
  const bool is_learning = terms.learns_gpu_memory && request.gpu_memory == Bytes{};
  if (request.gpus == 0 || is_learning) return each;
  const model::Policy policy = settings::policy(basis.configuration, basis.capacity);
  if (basis.machines.empty()) {
    return cpus_beside_gpus(request, policy, basis.capacity).value_or(each);
  }
  std::optional<model::Cpus> least;
  for (const model::NamedMachine& machine : basis.machines) {
    if (!request.where.takes_machine(machine.name)) continue;
    const auto here = cpus_beside_gpus(request, policy, machine.capacity);
    if (here && (!least || *here < *least)) least = here;
  }
  return least.value_or(each);
}

MadeTerms make_terms(const Asked& asked, bool device_goes_first, const TermsBasis& basis) {
  MadeTerms made{.terms = asked.terms};
  model::Terms& terms = made.terms;
  // A part of a CPU next to a GPU says nothing about the memory that a task needs.
  const model::Cpus for_memory = asked.cpus.value_or(model::cpus(model::processes_of(terms)));
  const settings::MemoryWish memory = asked.memory.value_or(settings::MemoryWish{
      .learned = true,
      .bytes = settings::default_memory(basis.configuration, basis.capacity, for_memory)});
  terms.learns_memory = memory.learned;
  terms.request.memory = memory.bytes;
  if (asked.memory && memory.learned) terms.memory_least = memory.bytes;
  terms.retries.failures = asked.retries.value_or(0);
  terms.request.sharing.max_per_gpu =
      asked.max_per_gpu.value_or(basis.configuration.count(settings::Setting::SchedulerMaxPerGpu));

  // A GPU for each rank, unless something else is said.
  std::optional<int> gpus = asked.gpus;
  if (!gpus && asked.gpu_memory && !asked.device && terms.ranks > 0) gpus = terms.ranks;
  const GpuWish wish{.gpus = gpus,
                     .memory = asked.gpu_memory.value_or(settings::MemoryWish{}),
                     .device = asked.device,
                     .device_goes_first = device_goes_first};
  const auto usual = basis.configuration.size(settings::Setting::SchedulerDefaultCudaMemory);
  Result<void> added = add_gpus(wish, usual.value_or(Bytes{}), terms.request);
  // A wish for a GPU model counts only for tasks that have GPUs.
  if (terms.request.gpus == 0) terms.request.where.gpu.clear();
  terms.learns_gpu_memory = wish.memory.learned && terms.request.gpus > 0;
  if (terms.learns_gpu_memory) terms.gpu_memory_least = wish.memory.bytes;
  terms.request.cpus = asked.cpus ? *asked.cpus : default_cpus(terms, basis);
  if (!added) {
    made.mistakes.push_back({.key = TaskKey::Device, .message = std::move(added.error().message)});
  }
  if (terms.memory_hard && terms.learns_memory) {
    made.mistakes.push_back(
        {.key = TaskKey::MemoryLimit,
         .message = asked.memory ? "'hard' cannot be combined with 'memory: at least ...'"
                                 : "'hard' needs 'memory', the amount"});
  }
  if (terms.gpu_memory_limit == model::GpuMemoryLimit::Hard &&
      (terms.request.gpu_memory == Bytes{} || terms.learns_gpu_memory)) {
    made.mistakes.push_back({.key = TaskKey::GpuMemoryLimit,
                             .message = terms.learns_gpu_memory
                                            ? "'hard' cannot be combined with a 'gpu-memory' that "
                                              "may grow ('at least', 'auto')"
                                            : "'hard' needs 'gpu-memory', the amount"});
  }
  if (terms.retries.after_time_limit && !asked.retries) {
    made.mistakes.push_back({.key = TaskKey::RetryOn,
                             .message = "'time-limit' needs 'retries', the number of retries"});
  }
  if (!fits_into(terms.time_limit, terms.early_signal)) {
    made.mistakes.push_back(
        {.key = TaskKey::Signal, .message = too_early_text(terms.time_limit, terms.early_signal)});
  }
  return made;
}

LearnedUse use_learned(model::Terms& terms, const ExpectedTask& expected, const TermsBasis& basis) {
  LearnedUse use;
  const model::Policy policy = settings::policy(basis.configuration, basis.capacity);
  model::Request& request = terms.request;
  if (terms.learns_memory && expected.memory.value > terms.memory_least) {
    const Bytes memory =
        std::min(expected.memory.value, settings::memory_to_give(policy, basis.capacity));
    use.memory_kept = expected.other_command && memory <= request.memory;
    use.memory = !use.memory_kept;
    if (use.memory) request.memory = memory;
  }
  // Without an amount it has a whole GPU, which is no less than what another command took.
  use.gpu_kept = terms.learns_gpu_memory && expected.other_command &&
                 request.gpu_memory == Bytes{} && expected.gpu_memory.value > Bytes{};
  if (terms.learns_gpu_memory && !use.gpu_kept && expected.gpu_memory.value > request.gpu_memory) {
    model::Terms with = terms;
    with.request.gpu_memory = expected.gpu_memory.value;
    // The size is compared with the largest GPU, whatever its model.
    with.request.where = {};
    // The amount may have been learned on a larger GPU.
    use.gpu_too_small =
        schedule::never_fits(model::request_of(with), policy, basis.capacity).has_value();
    use.gpu_memory = !use.gpu_too_small;
    if (use.gpu_memory) request.gpu_memory = with.request.gpu_memory;
  }
  terms.load_expected = expected.load.value;
  const Duration written = terms.train_expected;
  const Duration measured = expected.train.value;
  const bool known = measured > Duration{0} && (written == Duration{0} || !expected.beside_others);
  if (known && std::chrono::abs(measured - written) * 4 > written) {
    terms.train_expected = measured;
    use.duration = true;
  }
  return use;
}

}  // namespace trainyard::job

#include "job/idle_gpus_note.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/bytes.h"
#include "job/gpu_wish.h"
#include "schedule/ledger.h"

namespace trainyard::job {

std::optional<std::string> idle_gpus_note(const std::string& group, std::int64_t tasks,
                                          const model::Request& request,
                                          const model::Policy& policy,
                                          const model::Capacity& capacity) {
  if (request.gpu_memory == Bytes{} || request.cpus == model::Cpus{}) return std::nullopt;
  const std::int64_t on_gpus = tasks_on_gpus(request, policy, capacity);
  const std::int64_t on_cpus = capacity.cpus.milli / request.cpus.milli;
  const Bytes memory = capacity.memory - schedule::memory_kept_free(policy, capacity);
  const std::int64_t in_memory =
      request.memory > Bytes{} ? memory.count / request.memory.count : tasks;
  const std::int64_t wanted = std::min({on_gpus, in_memory, tasks});
  if (on_cpus >= wanted) return std::nullopt;
  // Rounded down, so that as many really fit.
  const std::int64_t hundredths = capacity.cpus.milli / wanted / 10;
  return fmt::format(
      "group '{}': the GPUs{} have room for {} of its tasks at once, the CPUs for {}: with "
      "'cpus: {}' all of them run",
      group, wanted == in_memory && wanted < std::min(on_gpus, tasks) ? " and the memory" : "",
      wanted, on_cpus, static_cast<double>(hundredths) / 100);
}

}  // namespace trainyard::job

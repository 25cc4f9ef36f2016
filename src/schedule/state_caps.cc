// The part of the scheduler that tells tasks how much they may take of a GPU that they share, and
// ends those for which that is a limit.
#include <algorithm>
#include <cstddef>
#include <optional>
#include <variant>

#include "base/bytes.h"
#include "base/time.h"
#include "model/command.h"
#include "model/ids.h"
#include "model/resources.h"
#include "model/terms.h"
#include "schedule/ending.h"
#include "schedule/gpu_ledger.h"
#include "schedule/gpu_room.h"
#include "schedule/scheduler.h"
#include "schedule/state.h"

namespace trainyard::schedule {

/// Caps the tasks that begin in this pass, once all of them have been entered.
void Scheduler::State::cap(std::size_t first_command, model::Decision& out) {
  for (std::size_t i = first_command; i < out.commands.size(); ++i) {
    const auto tell = [this](model::AttemptKey key, Bytes& most) {
      Running& running = running_.at(key.task);
      most = cap_of(running);
      running.gpu_memory_max = most;
    };
    if (auto* const start = std::get_if<model::StartAttempt>(&out.commands[i])) {
      tell(start->key, start->gpu_memory_max);
    } else if (auto* const grant = std::get_if<model::GrantDevice>(&out.commands[i])) {
      tell(grant->key, grant->gpu_memory_max);
    }
  }
}

/// Softly it is what nobody else was promised; one that is alone on its GPUs may have all of them.
Bytes Scheduler::State::cap_of(const Running& running) const {
  const model::GpuMemoryLimit limit = shape_of(running.key.task).terms.gpu_memory_limit;
  const Bytes promise = running.promise.gpu_memory;
  if (running.site.gpus.empty() || promise == Bytes{} || limit == model::GpuMemoryLimit::None)
    return {};
  if (limit == model::GpuMemoryLimit::Hard) return promise;
  bool alone = true;
  std::optional<Bytes> left;
  for (const model::GpuIndex gpu : running.site.gpus) {
    const GpuRoom& room = book_of(running).room_for_choice()[gpu.value];
    alone = alone && room.sharers.tasks() <= 1;
    left = std::min(left.value_or(room.free), room.free);
  }
  return alone ? Bytes{} : promise + std::max(Bytes{}, *left);
}

bool Scheduler::State::has_hard_gpu_limit(model::TaskIndex task) const {
  return shape_of(task).terms.gpu_memory_limit == model::GpuMemoryLimit::Hard;
}

void Scheduler::State::end_those_over_their_gpu_limit(const MachineBook& book, Instant at,
                                                      model::Decision& out) {
  for (const model::TaskIndex task : book.ledger.holders()) {
    Running& running = running_.at(task);
    if (!has_hard_gpu_limit(task) || running.cause != StopCause::None) continue;
    const GpuLedger& gpus = book.gpus;
    const bool over = std::ranges::any_of(
        running.site.gpus,
        [&gpus, of = task](model::GpuIndex gpu) { return gpus.excess_on(of, gpu) > Bytes{}; });
    if (!over) continue;
    running.lack = Lack::GpuMemory;
    stop(running, StopCause::GpuLimit, at, out);
  }
}

}  // namespace trainyard::schedule

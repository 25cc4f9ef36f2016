// The part of the writer of turns that is of machines: which join and go, and what was seen on
// them.
#include <algorithm>
#include <cstddef>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"
#include "journal/machine_table.h"
#include "journal/turn_writer.h"
#include "model/event.h"
#include "model/ids.h"

namespace trainyard::journal {

Result<void> TurnWriter::apply(Instant at, const model::MachineJoined& joined) {
  if (!gpus_before_) gpus_before_ = book_.numbers.gpus;
  auto& gpus = book_.numbers.gpus;
  gpus.resize(std::max<std::size_t>(gpus.size(), std::size_t{joined.machine.value} + 1));
  gpus[joined.machine.value] = labels_of(joined.capacity.gpus);
  samples_.join(joined);
  const Result<void> put = machines_.join(at, joined);
  // The machine may come back with fewer available GPUs.
  return put ? waiting_.leave(joined.machine) : put;
}

Result<void> TurnWriter::apply(Instant at, const model::MachineGone& gone) {
  samples_.leave(gone.machine);
  const Result<void> left = machines_.leave(at, gone);
  return left ? waiting_.leave(gone.machine) : left;
}

Result<void> TurnWriter::apply(Instant at, const model::Sampled& sample) {
  for (const model::TaskSample& seen : sample.tasks) {
    const Task* known = find(seen.key.task);
    if (known == nullptr || known->memory_now == seen.memory) continue;
    Task* row = touch_running(seen.key);
    if (row == nullptr || row->ended) continue;
    row->memory_now = seen.memory;
    row->memory_peak = std::max(row->memory_peak, seen.memory);
  }
  return samples_.add(at, sample);
}

/// An attempt on several GPUs has its memory on the GPU where it has most.
Result<void> TurnWriter::apply(const model::GpusSampled& sample) {
  for (const model::GpuFound& it : sample.found) {
    const Result<void> put = machines_.find(sample.machine, it);
    if (!put) return put;
  }
  for (const auto& [task, row] : live_) {
    // Attempts of other machines are updated with the samples of these.
    if (row.gpu_memory_now == Bytes{} || row.machine != sample.machine.value) continue;
    const bool seen = std::ranges::any_of(
        sample.uses, [task](const model::GpuUse& use) { return use.key.task.value == task; });
    if (seen) continue;
    Task* const gone = touch_running({.task = {task}, .attempt = row.attempt});
    if (gone != nullptr) gone->gpu_memory_now = {};
  }
  for (std::size_t i = 0; i < sample.uses.size();) {
    const model::AttemptKey key = sample.uses[i].key;
    Bytes most;
    for (; i < sample.uses.size() && sample.uses[i].key == key; ++i) {
      most = std::max(most, sample.uses[i].memory);
    }
    const Task* known = find(key.task);
    if (known == nullptr || known->gpu_memory_now == most) continue;
    Task* row = touch_running(key);
    if (row == nullptr || row->ended) continue;
    row->gpu_memory_now = most;
    row->gpu_memory_peak = std::max(row->gpu_memory_peak, most);
  }
  return {};
}

}  // namespace trainyard::journal

// The part of the local machine that looks at what attempts have of the host's memory, and knows
// the most that each had.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/resources.h"
#include "process/keeper.h"
#include "process/process_table.h"
#include "run/attempt_end.h"
#include "run/fresh_looks.h"
#include "run/local_machine.h"

namespace trainyard::run {

model::Sampled LocalMachine::sample() {
  std::vector<std::int64_t> roots;
  std::set<std::int64_t> sharing;
  std::vector<Attempt*> attempts;
  for (auto& [task, attempt] : running_) {
    if (attempt.pids.empty()) continue;
    roots.insert(roots.end(), attempt.pids.begin(), attempt.pids.end());
    if (attempt.forked) sharing.insert(attempt.pids.begin(), attempt.pids.end());
    attempts.push_back(&attempt);
  }
  const Instant before = now();
  const process::MachineReading reading = processes_.read(roots, sharing);
  model::Sampled sampled{.memory_available = reading.memory_available,
                         .cpu_used_by_others = reading.cpu_used_by_others,
                         .tasks = {}};
  if (looks_at_disk_) sampled.disk = disk_room();
  sampled.tasks.reserve(attempts.size());
  std::map<std::int64_t, model::TaskIndex> owners;
  auto tree = reading.trees.begin();
  for (Attempt* const attempt : attempts) {
    Bytes memory;
    Bytes shared;  // The same for all ranks, or nearly so.
    Duration cpu_time{0};
    for (Bytes& peak : attempt->rank_peaks) {
      if (tree->root_lives) attempt->lived_at = before;
      memory += tree->memory - tree->shared;
      shared = std::max(shared, tree->shared);
      cpu_time += tree->cpu_time;
      peak = std::max(peak, tree->memory);
      attempt->others = std::max(attempt->others, tree->others);
      for (const std::int64_t pid : tree->pids) owners.emplace(pid, attempt->key.task);
      ++tree;
    }
    memory += shared;
    attempt->memory_peak = std::max(attempt->memory_peak, memory);
    attempt->cpu_time = std::max(attempt->cpu_time, cpu_time);
    sampled.tasks.push_back({.key = attempt->key, .memory = memory});
  }
  owners_.sampled(std::move(owners));
  return sampled;
}

std::optional<model::DiskRoom> LocalMachine::disk_room() const {
  std::error_code wrong;
  const std::filesystem::space_info room = std::filesystem::space(options_.run_directory, wrong);
  if (wrong) return std::nullopt;
  return model::DiskRoom{.free = Bytes{static_cast<std::int64_t>(room.available)},
                         .total = Bytes{static_cast<std::int64_t>(room.capacity)}};
}

/// Between the looks of a second, and not reported: only the peak counts, not the present use.
void LocalMachine::look_at_fresh(Instant at) {
  for (const model::TaskIndex task : fresh_.take_due(at)) {
    const auto found = running_.find(task);
    if (found == running_.end() || found->second.forked) continue;
    Attempt& attempt = found->second;
    Bytes memory;
    Bytes shared;
    for (std::size_t rank = 0; rank < attempt.pids.size(); ++rank) {
      const process::TreeUsage tree = processes_.look_at(attempt.pids[rank]);
      memory += tree.memory - tree.shared;
      shared = std::max(shared, tree.shared);
      attempt.rank_peaks[rank] = std::max(attempt.rank_peaks[rank], tree.memory);
      attempt.others = std::max(attempt.others, tree.others);
      owners_.also(task, tree.pids);
    }
    attempt.memory_peak = std::max(attempt.memory_peak, memory + shared);
  }
}

/// Only the samples are known for a fork, because its own figure includes what it shares. The GPU
/// memory is known from samples alone.
void LocalMachine::add_peak(const Attempt& attempt, const process::ProcessEnded& news,
                            model::Usage& usage) {
  usage.gpu_memory_peak = attempt.gpu_memory_peak;
  usage.gpu_capped = !attempt.capped_by.empty() &&
                     model::is_near_cap(attempt.gpu_memory_peak, attempt.gpu_memory_max);
  const MemoryPeak peak = memory_peak_of(
      news, {.peak = attempt.memory_peak, .others = attempt.others, .alone = attempt.forked});
  usage.memory_peak = peak.bytes;
  usage.memory_at_least = peak.at_least;
}

}  // namespace trainyard::run

// The part of the made-up machine that has a disk, on which tasks write what they asked for.
#include <algorithm>
#include <cstdint>

#include "base/bytes.h"
#include "base/time.h"
#include "sim/machine.h"
#include "sim/watcher.h"
#include "sim/workload.h"

namespace trainyard::sim {

/// The half of it at once, the rest in the seconds that follow.
Bytes MadeUpMachine::written_by(const Process& process) const {
  constexpr Duration kTakes{20'000};
  if (!process.since) return {};
  const Duration lived = std::min(now() - *process.since, kTakes);
  const std::int64_t half = process.disk.count / 2;
  return Bytes{half + (process.disk.count - half) / kTakes.count() * lived.count()};
}

Bytes MadeUpMachine::disk_free() {
  Bytes free = kDiskOfAll - disk_left_;
  for (const auto& [task, process] : processes_) free -= written_by(process);
  if (free < Bytes{}) world_.watcher.complain("a task finds no room on the disk that it asked for");
  return free;
}

void MadeUpMachine::leave_on_disk(const Process& process) {
  constexpr Duration kStays{3'500};
  const Bytes left = written_by(process);
  if (left == Bytes{}) return;
  disk_left_ += left;
  at(now() + kStays, [this, left] { disk_left_ -= left; });
}

}  // namespace trainyard::sim

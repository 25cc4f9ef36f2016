// When a request that does not fit now is expected to fit, and which tasks may run meanwhile
// without making it wait any longer. Batch schedulers call that EASY backfill.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "model/ids.h"
#include "model/resources.h"
#include "schedule/gpu_ledger.h"
#include "schedule/gpu_room.h"

namespace trainyard::schedule {

/// The room that could be reserved at some moment.
struct Room {
  Bytes memory;
  model::Cpus cpus;
  std::vector<GpuRoom> gpus;
};

/// The resources that a running task will give back, and when; nothing: unknown.
struct Release {
  std::optional<Instant> at;
  Bytes memory;
  model::Cpus cpus;
  std::vector<GpuLedger::Share> gpus;
  std::size_t order = 0;  ///< Used by find_vacancy() only.
};

struct Vacancy {
  std::optional<Instant> at;  ///< Nothing: at an unknown time.
  Room spare;                 ///< The room left at that moment next to the request.
};

/// Nothing when the request does not fit even after all releases: holding others back for it would
/// help no task.
std::optional<Vacancy> find_vacancy(const model::Request& request, Room free,
                                    std::vector<Release> releases, const GpuChooser& chooser);

/// A task that is started now: its final request, its GPUs (nothing: not known yet), and its
/// expected duration (nothing: unknown).
struct Candidate {
  model::Request request;
  std::optional<GpuSet> gpus;
  std::optional<Duration> takes;
};

/// Whether it would delay the request that the vacancy is kept for.
bool would_delay(const Vacancy& vacancy, const Candidate& other, Instant now,
                 const GpuChooser& chooser);

/// The candidate was started: takes its request out of the spare room, if it fits there.
void take_beside(Vacancy& vacancy, const Candidate& started, const GpuChooser& chooser);

}  // namespace trainyard::schedule

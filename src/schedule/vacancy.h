// When a request that does not fit now is expected to fit, and what may run beside it meanwhile
// without making it wait any longer. What batch schedulers call EASY backfill.
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

/// What could be promised at some moment.
struct Room {
  Bytes memory;
  model::Cpus cpus;
  std::vector<GpuRoom> gpus;
};

/// What a running task will give back, and when; nobody knows when: nothing.
struct Release {
  std::optional<Instant> at;
  Bytes memory;
  model::Cpus cpus;
  std::vector<GpuLedger::Share> gpus;
  std::size_t order = 0;  ///< find_vacancy()'s own.
};

struct Vacancy {
  std::optional<Instant> at;  ///< Nothing: some day, nobody can say when.
  Room spare;                 ///< What is left at that moment beside the request.
};

/// Nothing when the request does not fit even after all releases: holding others back for it would
/// help nobody.
std::optional<Vacancy> find_vacancy(const model::Request& request, Room free,
                                    std::vector<Release> releases, const GpuChooser& chooser);

/// One that is started now: what it will have in the end, on which GPUs (nothing: nobody knows
/// yet), and how long it is expected to take (nothing: nobody knows).
struct Candidate {
  model::Request request;
  std::optional<GpuSet> gpus;
  std::optional<Duration> takes;
};

/// Whether it would delay what the vacancy is kept for.
bool would_delay(const Vacancy& vacancy, const Candidate& other, Instant now,
                 const GpuChooser& chooser);

/// It was started: what it takes of the spare room is gone, if it fits there.
void take_beside(Vacancy& vacancy, const Candidate& started, const GpuChooser& chooser);

}  // namespace trainyard::schedule

// The state of one pass over the waiting tasks. For the files of this folder alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "model/ids.h"
#include "model/resources.h"
#include "model/waiting.h"
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

/// The moment at which a request that does not fit now is expected to fit. Tasks that do not delay
/// it may run meanwhile (would_delay()): batch schedulers call that EASY backfill.
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

/// A task that lacks room, and its request.
struct Blocked {
  model::TaskIndex task;
  model::Request request;
  std::optional<model::MachineIndex> machine;  ///< The machine on which it has loaded.
};

/// The room that is kept for a task, and its machine.
struct Kept {
  model::MachineIndex machine;
  Vacancy vacancy;
};

/// The place where a task can be started now: Cause::None. Else its obstacle on the machine where
/// it came furthest, and the GPUs that it waits for there, if a task has to settle first.
struct Place {
  model::Cause cause = model::Cause::None;
  model::Site site;
};

/// Number of younger tasks that started while one was the oldest that lacked room, and since when.
struct Passed {
  int times = 0;
  Instant since;
};

/// A task that is looked ahead over, and the prospect that it is part of.
struct LookedAhead {
  model::TaskIndex task;
  std::uint32_t prospect = 0;
};

/// One look at the waiting tasks, oldest first.
struct Round {
  Instant at;
  std::optional<Blocked> oldest;
  bool owed = false;         ///< It was passed too often.
  std::optional<Kept> kept;  ///< The room that is kept for it then.
};

/// The search over the machines for one task: its request, and the result so far.
struct Looked {
  model::Request asked;
  bool is_too_much = false;  ///< No machine has so much.
  Place furthest{.cause = model::Cause::NoMachine, .site = {}};
};

}  // namespace trainyard::schedule

// The state of one pass over the waiting tasks. For the files of this folder alone.
#pragma once

#include <cstdint>
#include <optional>

#include "base/time.h"
#include "model/ids.h"
#include "model/resources.h"
#include "model/waiting.h"
#include "schedule/vacancy.h"

namespace trainyard::schedule {

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

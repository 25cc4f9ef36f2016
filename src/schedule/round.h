// What a pass over those that wait remembers while it goes on. For the files of this folder alone.
#pragma once

#include <cstdint>
#include <optional>

#include "base/time.h"
#include "model/ids.h"
#include "model/resources.h"
#include "model/waiting.h"
#include "schedule/vacancy.h"

namespace trainyard::schedule {

/// One that lacks room, and what it asks for.
struct Blocked {
  model::TaskIndex task;
  model::Request request;
  std::optional<model::MachineIndex> machine;  ///< Of one that has loaded there.
};

/// The room that is kept for one, and where.
struct Kept {
  model::MachineIndex machine;
  Vacancy vacancy;
};

/// Where one can be started now: Cause::None. Else what holds it back where it came furthest, and
/// the GPUs that it waits for there, where one has to settle first.
struct Place {
  model::Cause cause = model::Cause::None;
  model::Site site;
};

/// How often younger tasks started while one was the oldest that lacked room, and since when.
struct Passed {
  int times = 0;
  Instant since;
};

/// A task that is looked ahead over, and which of the prospects it is part of.
struct LookedAhead {
  model::TaskIndex task;
  std::uint32_t prospect = 0;
};

/// One look at those who wait, oldest first.
struct Round {
  Instant at;
  std::optional<Blocked> oldest;
  bool owed = false;         ///< It was passed too often.
  std::optional<Kept> kept;  ///< The room that is kept for it then.
};

/// A look at the machines for one of them: what it asks for, and what was found so far.
struct Looked {
  model::Request asked;
  bool is_too_much = false;  ///< Nobody has so much.
  Place furthest{.cause = model::Cause::NoMachine, .site = {}};
};

}  // namespace trainyard::schedule

// Plays a recorded run again: the scheduler gets the same events, and should make the same
// decisions. That makes it possible to look into the report of a bug.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "journal/recording.h"

namespace trainyard::run {

/// The first point at which the scheduler decides differently.
struct Difference {
  std::int64_t event = 0;  ///< Number of the event, from 1.
  Instant at;
  std::string heard;  ///< As recorded, like all three.
  std::string decided_then;
  std::string decided_now;
};

struct Replayed {
  std::int64_t events = 0;
  std::int64_t starts = 0;               ///< Number of attempts that were started.
  Instant until;                         ///< The time of the last event.
  std::optional<Difference> difference;  ///< The first, which ends the replay.
};

/// Called with each event and its results, as recorded.
using SeeRow = std::move_only_function<void(const journal::RecordingReader::Row&)>;

/// An error where the record cannot be read, or is not one of a run. `see` may be empty.
Result<Replayed> replay(journal::RecordingReader& recording, SeeRow see = nullptr);

}  // namespace trainyard::run

// A run that was recorded, played again: the scheduler hears what it heard then, and should decide
// what it decided then. That it does is what makes a report of a bug one that can be looked into.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "journal/recording.h"

namespace trainyard::run {

/// Where the scheduler decides otherwise than it did.
struct Difference {
  std::int64_t event = 0;  ///< Which it was, from 1.
  Instant at;
  std::string heard;  ///< As recorded, like all three.
  std::string decided_then;
  std::string decided_now;
};

struct Replayed {
  std::int64_t events = 0;
  std::int64_t starts = 0;               ///< Of attempts, that were decided.
  Instant until;                         ///< When the last event was.
  std::optional<Difference> difference;  ///< The first, which is where it ends.
};

/// What one event led to, as recorded: for who wants to see all of it.
using SeeRow = std::move_only_function<void(const journal::RecordingReader::Row&)>;

/// An error where the record cannot be read, or is not one of a run. `see` may be empty.
Result<Replayed> replay(journal::RecordingReader& recording, SeeRow see = nullptr);

}  // namespace trainyard::run

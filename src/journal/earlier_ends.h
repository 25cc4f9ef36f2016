// Ends of attempts that the last execution of a run did not write down: the keeper has noted them.
// They go into the journal as that execution would have written them.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "journal/sqlite.h"
#include "model/command.h"
#include "model/event.h"

namespace trainyard::journal {

/// In the event and the decision its task is number 0, and `task` its number in the journal.
struct EarlierEnd {
  std::uint32_t task = 0;
  std::uint32_t attempt = 0;
  model::Event event;
  model::Decision decision;
};

struct EarlierEndCounts {
  int own = 0;      ///< Attempts that have ended by themselves, or have left a result.
  int stopped = 0;  ///< Attempts that were stopped: their tasks run again.

  friend bool operator==(const EarlierEndCounts&, const EarlierEndCounts&) = default;
};

/// Writes down those of attempts that run as far as the journal knows, inside the caller's
/// transaction; in the order of their events, and none before what is there. Returns how many.
Result<EarlierEndCounts> put_earlier_ends(Database& database, const std::vector<EarlierEnd>& ends);

}  // namespace trainyard::journal

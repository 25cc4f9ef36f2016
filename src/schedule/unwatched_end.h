// What becomes of a task whose attempt ended when no yard was there: decided later, by what was
// noted of its end and what the journal knows of it, as its yard would have. Nothing is tried again
// here: whoever goes on with the run sees to that.
#pragma once

#include <cstdint>
#include <string>

#include "model/command.h"
#include "model/event.h"
#include "model/status.h"

namespace trainyard::schedule {

struct UnwatchedAttempt {
  Status status = Status::Available;  ///< As it was written down last.
  Stage stage = Stage::Train;
  std::string message;  ///< What went with that.
  std::uint32_t attempt = 1;
  bool two_phase = false;
  int ranks = 0;
  /// It had said that it trains, and has trained when it ends well.
  bool its_end_tells = false;
  /// It had been told to end, as everything is when the yard is gone.
  bool told_to_end = false;
};

/// One that exited with code 0 and left its result has finished, whatever it was told. The task of
/// what is decided has the number 0.
model::Decision decide_unwatched_end(const UnwatchedAttempt& known,
                                     const model::AttemptEnded& ended);

}  // namespace trainyard::schedule

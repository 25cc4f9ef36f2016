// The outcome of a task whose attempt ended while no yard was there: decided later, by the notes of
// its end and the journal, as its yard would have. Nothing is retried here: the yard that resumes
// the run does that.
#pragma once

#include <cstdint>
#include <string>

#include "model/command.h"
#include "model/event.h"
#include "model/status.h"

namespace trainyard::schedule {

struct UnwatchedAttempt {
  Status status = Status::Available;  ///< The last status in the journal.
  Stage stage = Stage::Train;
  std::string message;  ///< The message of that status.
  std::uint32_t attempt = 1;
  bool two_phase = false;
  int ranks = 0;
  /// It had reported that it trains, and has trained if it exits with success.
  bool its_end_tells = false;
  /// It had been stopped, as everything is when the yard is gone.
  bool told_to_end = false;
};

/// An attempt that exited with code 0 and left its result has finished, even if it was stopped.
/// The task in the decision has the number 0.
model::Decision decide_unwatched_end(const UnwatchedAttempt& known,
                                     const model::AttemptEnded& ended);

}  // namespace trainyard::schedule

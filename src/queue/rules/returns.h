// Which submissions go back into the queue when a run runs again. Pure: the commands (src/cli) read
// the facts, and put the submissions back.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "queue/rules/queue_choice.h"
#include "queue/rules/submission.h"

namespace trainyard::queue {

/// The facts about runs and submissions that decide it.
struct ReturnFacts {
  using Question = std::function<bool(const Submission&)>;

  FateOf fate_of;
  Question has_run;          ///< The directory still is that of the submission, and has its run.
  Question needs_ran_again;  ///< Runs that it needs ran again after its run.
  Question has_no_start;     ///< Ended before it began, and its directory is as it was then.
  /// Whether the directory of a run is no longer that of the run: the run cannot be retried.
  std::function<bool(std::uint32_t number)> is_directory_gone;
  /// The submission of this number if it ended before it began.
  std::function<std::optional<Submission>(std::uint32_t number)> without_start;
  /// Whether `--cascade` of a run that it needs takes the submission of this number: false for one
  /// that was removed, or refused.
  std::function<bool(std::uint32_t number)> is_in_cascade;
  /// "'trainyard run --resume runs/x'" for a run that `retry` would not take as a whole:
  /// it was interrupted or died, or none of its tasks has failed. Else empty.
  std::function<std::string(std::uint32_t number)> resume_command;
};

/// Refuses a submission that the queue would skip again at once, and says what would run it.
Result<void> check_needs(const Submission& submission, const ReturnFacts& facts);

struct Returns {
  std::vector<Submission> submissions;  ///< A submission comes after those it needs.
  std::vector<Error> refused;           ///< The reasons why others do not go back.
};

struct RetriedRun {
  std::uint32_t number = 0;
  bool runs_again = false;  ///< Tasks of it that have succeeded run again, too.
};

/// The submissions of `behind` that go back because of a run: those that ended before they began,
/// and those that are out of date. `behind` has the submissions that need the run, or one of these,
/// in the order of their numbers.
Returns choose_returns(RetriedRun retried, std::vector<Submission> behind,
                       const ReturnFacts& facts);

}  // namespace trainyard::queue

// Submissions that go back into the user's queue under their numbers: those that ended before they
// began - skipped, refused or removed - by `trainyard retry 2` and `retry 1 --cascade`, and those
// that ran and are out of date once run 1 runs again, by `retry 1 --cascade`.
//
// Their runs have the environment, the umask and the limits of the shell in which `retry` is typed,
// as the queue does not keep those of ended submissions. A submission that needs a run that did not
// succeed, and does not run again, is refused: the queue would skip it again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/known_runs.h"
#include "queue/queue_files.h"
#include "queue/rules/returns.h"

namespace trainyard::cli {

class QueueReturn {
 public:
  /// The submissions behind a run that go back.
  enum class Takes : std::uint8_t {
    Skipped,    ///< Submissions that were skipped because the run, or one of them, did not succeed.
    OutOfDate,  ///< Also submissions that are out of date, or that need one that goes back.
    Begun,      ///< Also all that need the run and began, as the run runs again.
  };

  /// None.
  QueueReturn() = default;
  /// The submissions behind the run in this directory. None where the run has no number.
  static Result<QueueReturn> behind(const std::string& run_directory, Takes takes);

  /// The submission of this directory; with `cascade` also those behind it. An error if the queue no
  /// longer has the submitted files, or would skip it again.
  static Result<QueueReturn> itself(const std::string& run_directory, bool cascade);

  /// Neither a submission that goes back nor one that is refused.
  [[nodiscard]] bool is_empty() const {
    return returns_.submissions.empty() && returns_.refused.empty();
  }
  /// The numbers of the submissions that go back.
  [[nodiscard]] std::vector<std::uint32_t> numbers() const;

  /// For a dry run, a line each: "run 2 ('runs/eval') would go back into your queue", or why not.
  [[nodiscard]] std::string shown() const;

  /// Has the queue up, so that put_back() starts no process. Nothing where none goes back.
  [[nodiscard]] Result<void> serve_queue() const;

  /// Prints each, once it is in the queue: "run 2 is back in your queue"; and first why others are
  /// refused.
  [[nodiscard]] ExitCode put_back() const;

 private:
  queue::Returns returns_;
};

/// An error if the queue would skip the submission: the reason, and what would run it.
Result<void> check_needs(const queue::QueueFiles& files, const queue::Submission& submission);

/// Prints which submissions were skipped because of a run and how to put them back, if there are
/// any: "runs 2 to 4 were skipped because of run 1: 'trainyard retry 1 --cascade' puts them back
/// into your queue".
void note_skipped(const std::string& run_directory);

/// Prints which runs are out of date once a run is retried, if there are any: those that need it,
/// also by `--if 'always()'`, have started, and do not go back into the queue.
void note_out_of_date(const std::string& run_directory, const QueueReturn& going_back);

/// `trainyard retry` of a run that ended before it began; with --cascade also of one that waits.
ExitCode retry_submission(const app::RetryRequest& request, const TasksOfRun& selection);

}  // namespace trainyard::cli

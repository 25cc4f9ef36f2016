// The rows of `status` without a run: active runs, runs in the queue, and submissions that did not
// start; and the reason why a submission in the queue waits.
//
// Pure: the caller reads locks, journals and the queue. Any thread.
//
//   living_text({{.number = 7, .shown = "runs/sweep", .tasks = 6, .finished = 2}}, {.width = 80});
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "journal/reader.h"
#include "queue/rules/submission.h"

namespace trainyard::app {

/// An active run, a submission that waits, or one that ended before it began.
struct LivingRun {
  std::uint32_t number = 0;
  std::string directory;
  std::string shown = {};                       ///< The directory as seen from the current one.
  bool is_suspended = false;                    ///< Its process is, as by SIGSTOP.
  bool is_stopping = false;                     ///< Interrupted, and its tasks have not ended.
  bool is_queued = false;                       ///< Not active, but may start or be resumed.
  std::string reason = {};                      ///< The reason why the run is not active.
  bool is_given_up = false;                     ///< The queue does not resume it any more.
  std::optional<queue::NoStart> no_start = {};  ///< Never begins; nothing: may begin, or has.
  int tasks = 0;
  int finished = 0;
  int failed = 0;
  int running = 0;
};

/// The facts that decide when a submission in the queue starts.
struct QueueView {
  std::string idle = {};  ///< For users: why the queue starts nothing now; empty: it starts runs.
  std::vector<queue::QueuedSubmission> waiting = {};  ///< In the order in which they would start.
  std::vector<queue::RunWithoutRoom> without_room = {};
  /// A run that could not start, and before which nothing starts; 0: none.
  std::uint32_t blocking = 0;
};

/// For users: the reason why the submission at this place of QueueView::waiting has not started.
std::string why_waiting(const QueueView& queue, std::size_t place, const queue::FateOf& fate_of);

/// "resumes in 1m30s: 2 of 6 tasks finished": why a run that ended incomplete, or could not start,
/// is not active.
std::string why_paused(const queue::IncompleteRun& run, std::int64_t now_unix_ms);

/// "your queue resumes it in 1m30s (2 of 6 tasks finished)": the same for the status of that run.
std::string how_resumed(const queue::IncompleteRun& run, std::int64_t now_unix_ms);

/// The resources for which tasks of a run wait; Cause::None if they wait for nothing of the kind.
queue::RoomNeed room_need(const std::vector<journal::WaitingReason>& reasons);

/// The directory of a submission that has ended, as it is now.
struct EndedDirectory {
  std::string shown;           ///< As seen from the current directory.
  bool is_its_own = true;      ///< False where a later run has it, as after `clean`.
  bool is_active = false;      ///< A process runs the run now.
  bool has_submission = true;  ///< The mark of a submission is in it.
  bool has_journal = false;
};

/// The row of a run that the queue has given up, until it is resumed, or of a submission that was
/// refused, skipped or not needed within the last day, unless it was cleaned or has run since.
/// Nothing for any other end. `look` reads the directory, and is called at most once.
std::optional<LivingRun> row_of_end(const queue::EndedSubmission& ended, std::int64_t now_unix_ms,
                                    const std::function<EndedDirectory()>& look);

struct LivingTextOptions {
  int width = 0;  ///< Columns to which reasons and directories are shortened; 0: any number.
  /// Whether `clean` deletes the directory of a submission that did not start. May be empty: no.
  std::function<bool(const LivingRun& run)> is_cleanable = {};
};

/// A line for each run, below a heading; a sentence if there is none. Lists the last 20 of those
/// that ended before they began, and the number of the others.
std::string living_text(const std::vector<LivingRun>& all, const LivingTextOptions& options = {});
std::string living_json(const std::vector<LivingRun>& runs);

/// The output of `status` without a run: living_text(), with the way to list ended runs if there is
/// no run. Ends with `lesser_limits`, the note on the limits of the queue, unless it is empty.
std::string living_page(const std::vector<LivingRun>& runs, const std::string& lesser_limits,
                        const LivingTextOptions& options = {});

/// Follows the run in the directory `shown`, which `status` shows without a name: the other runs.
/// Empty if there are none.
std::string other_runs_text(std::vector<LivingRun> runs, const std::string& shown,
                            const LivingTextOptions& options = {});

}  // namespace trainyard::app

// What of a user's runs on this host is at work, or waits in their queue: for `status`, and for
// commands that are about a run which has not begun.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "run/queue_files.h"
#include "schedule/queue_choice.h"

namespace trainyard::cli {

/// Why the submission that this directory is kept for has not begun: what it waits for, or why it
/// never will. Nothing for any other directory.
std::optional<Error> why_not_begun(const std::string& run_directory);

/// Tasks of a run that have finished; 0 where its journal cannot be read.
int count_finished(const std::string& run_directory);

/// The outcome of a run of the queue, or of one that was started without the queue.
schedule::Fate fate_of_run(const run::QueueFiles& files, std::uint32_t number);

/// For people: why a submission ended before it began, as it is now; empty where it began.
std::string reason_of_end(const run::QueueFiles& files, const run::EndedSubmission& ended);

/// "2 to 9, 12" of numbers in order.
std::string ranges_of(const std::vector<std::uint32_t>& numbers);

/// The runs that the submission of this directory needs and that ran again after it had started:
/// its results are out of date. Reads the journal of each that was resumed since.
std::vector<std::uint32_t> needs_run_again(const std::string& run_directory);

/// "'trainyard up' resumes it", or "your queue resumes it" where it is up, of a run of the queue that
/// has started and is not active now; empty for runs that the queue does not resume.
std::string how_queue_resumes(const std::string& run_directory);

/// For people: the process that serves the queue is suspended; empty where none is.
std::string why_suspended(const run::QueueFiles& files);

/// For people: nobody serves the queue, or who does is suspended or begins no more; else empty.
std::string why_nothing_begins(const run::QueueFiles& files);

/// Whether it is one that may still begin.
bool waits_in_queue(const std::string& run_directory);

/// Whether your queue has it and goes on with it, now or once it is up.
bool goes_on_in_queue(const std::string& run_directory);
/// Whether your queue resumes the run, whose number is known, now or once the queue runs.
bool goes_on_in_queue(const std::string& run_directory, std::uint32_t number);

/// Whether your queue has a submission of this number: one that has not ended, or was refused
/// because its directory is gone. Such a submission counts as a run also without its directory.
bool is_known_without_directory(std::uint32_t number);

/// When the submission of this number was submitted; 0 where your queue does not know it.
std::int64_t time_of_submission(std::uint32_t number);

/// When a submission ended, or at least was submitted, that was refused, skipped or removed before
/// it began. Nothing for any other directory.
std::optional<std::int64_t> time_of_no_start(const std::string& run_directory);

/// A run of the queue that has ended goes on beside it: what needs the run waits for its new end.
void forget_end_in_queue(const std::string& run_directory);

/// Whether your queue is just beginning it.
bool is_about_to_begin(const std::string& run_directory);

/// What of the limits of this shell (nice value, ulimit) the queue that is up cannot give its runs,
/// and the cure; empty where it can, or is down.
std::string lesser_limits(const run::QueueFiles& files);

/// Takes a submission that waits out of the queue, or one that the queue is to go on with and is
/// not up; what was done, for people. Nothing where there is none for this directory.
std::optional<std::string> take_out_of_queue(const std::string& run_directory);

/// A run at work, a submission that waits, or one that ended before it began.
struct LivingRun {
  std::uint32_t number = 0;
  std::string directory;
  bool is_queued = false;                     ///< It is not active but may start or be resumed,
  std::string reason;                         ///< and why.
  bool is_given_up = false;                   ///< The queue does not resume it any more.
  std::optional<run::NoStart> no_start = {};  ///< It never will begin; nothing: it may, or has.
  int tasks = 0;
  int finished = 0;
  int failed = 0;
  int running = 0;
};

/// By number. Reads the journal of each that is at work.
std::vector<LivingRun> living_runs();

/// Submissions that ended before they began, within the last day: refused when they began, or
/// skipped; without those that were cleaned. And runs that the queue has given up, until they are
/// resumed. By number.
std::vector<LivingRun> runs_without_start();

/// A line for each, below a heading; says so where there is none. Of those that have ended the last
/// 20, and how many more there are.
std::string living_text(const std::vector<LivingRun>& runs);
std::string living_json(const std::vector<LivingRun>& runs);

}  // namespace trainyard::cli

// The user's runs on this host that are active, or wait in their queue: for `status`, and for
// commands about a run that has not begun.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/living_runs.h"
#include "base/result.h"
#include "queue/queue_files.h"
#include "queue/rules/queue_choice.h"
#include "run/run_outcome.h"

namespace trainyard::cli {

/// The reason why the submission that this directory is kept for has not begun, or never will.
/// Nothing for any other directory.
std::optional<Error> why_not_begun(const std::string& run_directory);

/// Tasks of a run that have finished; 0 where its journal cannot be read.
int count_finished(const std::string& run_directory);

/// The outcome of a run of the queue, or of one that was started without the queue.
queue::Fate fate_of_run(const queue::QueueFiles& files, std::uint32_t number);

/// "'trainyard run --resume runs/x'" for a run that was interrupted, died or ended incomplete, or
/// that did not succeed although no task has failed; else empty.
std::string resume_command(std::uint32_t number);

/// For people: the present reason why a submission ended before it began; empty if it began.
std::string reason_of_end(const queue::QueueFiles& files, const queue::EndedSubmission& ended);

/// The runs that the submission of this directory needs and that ran again after the oldest of its
/// outcomes was started: it is out of date. Reads its journal, and that of each that it needs. The
/// only errors are those of the machine (Error::of_machine).
Result<std::vector<std::uint32_t>> needs_run_again(const std::string& run_directory);

/// The way in which a run that is out of date runs again: "'trainyard retry 2 --cascade' runs it
/// again", or that your queue does so.
std::string how_runs_again(const std::string& run_directory);

/// "'trainyard up' resumes it", or "your queue resumes it in 1m30s" where it is up, of a run of the
/// queue that has started and is not active now; empty for runs that the queue does not resume.
std::string how_queue_resumes(const std::string& run_directory);

/// The text of how_queue_resumes(); for a run that the queue has given up, the reason and the command
/// that resumes it. Empty for any other run.
std::string prospect_in_queue(const std::string& run_directory);

/// For people: the process that serves the queue is suspended; empty where none is.
std::string why_suspended(const queue::QueueFiles& files);

/// For people: no process serves the queue, or it is suspended or begins nothing more; else empty.
std::string why_nothing_begins(const queue::QueueFiles& files);

/// Whether this directory belongs to a submission that may still begin.
bool waits_in_queue(const std::string& run_directory);

/// The submission of this directory that your queue has, as long as it has not ended.
std::optional<queue::Submission> submission_in_queue(const std::string& run_directory);

/// Whether your queue has the run and resumes it, now or once the queue is up.
bool goes_on_in_queue(const std::string& run_directory);
/// Whether your queue resumes the run, whose number is known, now or once the queue is up.
bool goes_on_in_queue(const std::string& run_directory, std::uint32_t number);

/// Whether your queue has a submission of this number: one that has not ended, or was refused
/// because its directory is gone. Such a submission counts as a run also without its directory.
bool is_known_without_directory(std::uint32_t number);

/// When the submission of this number was submitted; 0 where your queue does not know it.
std::int64_t time_of_submission(std::uint32_t number);

/// When a submission ended, or at least was submitted, that was refused, skipped or removed before
/// it began. Nothing for any other directory.
std::optional<std::int64_t> time_of_no_start(const std::string& run_directory);

/// A run of the queue that has ended is resumed outside of it: submissions that need the run wait
/// for its new end.
void forget_end_in_queue(const std::string& run_directory);

/// Whether your queue is just beginning the run.
bool is_about_to_begin(const std::string& run_directory);

/// The limits of this shell (nice value, ulimit) that the queue cannot give its runs, and the cure;
/// empty if it can, or is down.
std::string lesser_limits(const queue::QueueFiles& files);

/// Takes a waiting submission out of the queue, or one that the queue would resume while it is
/// down. Returns the outcome for people; nothing if there is none for this directory.
std::optional<std::string> take_out_of_queue(const std::string& run_directory);

/// By number. Reads the journal of each that is at work.
std::vector<app::LivingRun> living_runs();

/// Submissions that ended before they began, within the last day: refused when they began, or
/// skipped; without those that were cleaned. And runs that the queue has given up, until they are
/// resumed. By number.
std::vector<app::LivingRun> runs_without_start();

using run::RunOutcome;

/// The outcome of a run as the lock and the journal of its directory have it, for commands that wait
/// for the run and for a queue.
Result<RunOutcome> outcome_of(const std::string& run_directory);

}  // namespace trainyard::cli

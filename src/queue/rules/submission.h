// The records of submissions, and their text in the files of the queue (queue/queue_files.h). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "model/resources.h"
#include "model/terms.h"
#include "queue/rules/queue_choice.h"
#include "sys/process_limits.h"

namespace trainyard::queue {

/// A run that ended incomplete (exit code 75), or could not start as the machine is short of
/// something. The queue resumes it after a pause.
struct IncompleteRun {
  int ends = 0;  ///< In a row; those after which more tasks have finished than before begin at 1.
  int finished = 0;                  ///< Tasks that had finished at the last end.
  std::int64_t resumes_unix_ms = 0;  ///< The end of the pause.
  /// False: it could not start, and neither could another one. Nothing starts before it does.
  bool began = true;
  std::string why;  ///< For people.

  friend bool operator==(const IncompleteRun&, const IncompleteRun&) = default;
};

/// A job to run, and the settings with which it was submitted.
struct Submission {
  std::uint32_t number = 0;  ///< Number of the run that it becomes.
  std::string run_directory;
  std::string job_file;     ///< Absolute.
  std::string config_file;  ///< Empty: none was given.
  std::vector<std::string> settings;
  std::string command_line;  ///< As typed, without secrets.
  std::string directory;     ///< The directory in which it was submitted.
  std::uint32_t umask = 0;
  sys::ProcessLimits limits;             ///< Limits of the submitting shell.
  std::vector<std::string> environment;  ///< NAME=value
  int priority = 0;
  bool needs_gpu = false;  ///< Some task of it.
  Bytes memory;            ///< The smallest request of its tasks.
  model::Cpus cpus;        ///< The smallest request of its tasks.
  std::vector<std::uint32_t> needs;
  model::RunIf run_if = model::RunIf::Success;
  std::int64_t submitted_unix_ms = 0;
  /// The submission went back into the queue after its run had ended: all tasks run again.
  bool runs_again = false;
  /// Set for a submission whose run has begun, and waits to be resumed or was resumed after that.
  std::optional<IncompleteRun> incomplete = {};

  friend bool operator==(const Submission&, const Submission&) = default;
};

/// Why a submission ended before it began, or before it began again.
enum class NoStart : std::uint8_t {
  Refused,        ///< `trainyard run` did not start it.
  DirectoryGone,  ///< See why_directory_lost().
  Skipped,        ///< A run that it needs did not succeed.
  NotNeeded,      ///< Starts only after a failure, and all that it needs succeeded.
  Removed,        ///< Its user removed it from the queue.
};

/// EndedSubmission::why of NoStart::Removed.
constexpr std::string_view kRemovedByUser = "removed from the queue";

/// The end of a submission.
struct EndedSubmission {
  std::uint32_t number = 0;
  std::string run_directory;
  int exit_code = 0;                ///< Exit code of `trainyard run`.
  std::optional<NoStart> no_start;  ///< Nothing: its run says how it ended.
  /// The reason for people. Without `no_start` only of a run that the queue has given up.
  std::string why;
  std::int64_t ended_unix_ms = 0;
  /// Its run was resumed outside the queue since: the outcome is that of the run.
  bool is_resumed = false;
  /// The submission was to run again (Submission::runs_again) and did not start. Set by end().
  bool runs_again = false;

  friend bool operator==(const EndedSubmission&, const EndedSubmission&) = default;
};

/// The mark in the directory of a submission (run::submission_path()), written when the directory
/// is made. It stays when the run has begun: commands find the run by it. Copied with the
/// directory.
struct SubmissionMark {
  std::string name;  ///< Name of its job: "eval" in runs/eval-2.
  std::int64_t submitted_unix_ms = 0;

  friend bool operator==(const SubmissionMark&, const SubmissionMark&) = default;
};

/// The part of a submission that decides when it begins.
QueuedSubmission queued(const Submission& submission);

/// Whether the run of a submission that has ended began.
bool has_begun(const EndedSubmission& ended);

/// Converts records to text and back. An error names the wrong line of a damaged text.
std::string to_text(const Submission& submission);
Result<Submission> submission_from(std::string_view text);
std::string to_text(const EndedSubmission& ended);
/// With the fields of the submission that are kept after its end: submission_from() reads them.
std::string to_text(const EndedSubmission& ended, const Submission& submission);
Result<EndedSubmission> ended_from(std::string_view text);
std::string to_text(const SubmissionMark& mark);
/// Empty fields for a damaged text.
SubmissionMark mark_from(std::string_view text);

}  // namespace trainyard::queue

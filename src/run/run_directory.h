// The names and places of everything of a run: the one place that makes these names. Directories of
// runs are runs/digits, and the next ones runs/digits-2, -3 and so on.
//
// The names that users see come from the journal, which has the directory of each group.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "sys/open_file.h"

namespace trainyard::run {

// The end of an execution, as its journal says.
constexpr const char* kEnded = "ended";
/// Begins with journal::kInterrupted.
constexpr const char* kTerminated = "interrupted by TERM";
/// Put before the cause, if it is no failed task.
constexpr const char* kNotAllDone = "not all is done: ";
constexpr const char* kKeeperDied = "the keeper or its guard died";

/// With the links on its way followed: a run is the same by whichever name it is called, and the
/// remains of a dead run are found by the one name in their environment.
std::string real_directory(const std::string& wanted);

/// The former path of a run directory, links followed, and its present one.
struct RunMove {
  std::string was;  ///< Empty: unknown.
  std::string is;
};
/// The present path of a file that a run named while its directory was `move.was`: a project that
/// is copied or moved keeps the place of its files relative to the run directory. It is `path`
/// itself where the run has not moved. Follows links in the directory of `path`; the file need not
/// exist.
std::string path_after_move(const std::string& path, const RunMove& move);
/// The present path of a directory in which tasks worked while the run directory was `move.was`.
/// The directory has moved as well if the run directory is at the same place below it now, or below
/// the last directory that had both. It is `path` itself where only the run directory has moved.
std::string directory_after_move(const std::string& path, const RunMove& move);

/// The first of `first`, `first`-2, `first`-3, ... that does not exist, is empty, or cannot be
/// looked at. Another process may take it as well: the lock decides.
std::string free_run_directory(const std::string& first);

/// Those that exist, in no order; runs/digits-50 may be the first of a job of that name.
std::vector<std::string> run_directories_like(const std::string& first);

/// Whether a name may be that of a run directory of such a job: "digits", "digits-2", not
/// "digits-a".
bool is_directory_like(std::string_view name, std::string_view first);

/// The variable in the environment of every process of a run, by which remaining processes are
/// found: "TRAINYARD_RUN_DIR=/home/me/runs/digits".
std::string mark_of(const std::string& run_directory);
/// Time between TERM and KILL for the remains of a dead execution.
inline constexpr Duration kLeftoverGrace{5'000};

std::string journal_path(const std::string& run_directory);
std::string reports_directory(const std::string& run_directory);
/// The file in which the keeper notes ends while the yard is gone (process/end_notes.h).
std::string ends_path(const std::string& run_directory);
/// The output of the process that imports for the tasks of a group with `preload`.
std::string preload_log_path(const std::string& run_directory);

/// The output of a run without a terminal: `run -d`, and those of the queue.
std::string run_log_path(const std::string& run_directory);
/// The file that marks the directory as kept for a submission, with its number. It stays after the
/// run has begun.
std::string submission_path(const std::string& run_directory);
/// The text of a job file as it was submitted, or the job of a command on the command line.
std::string kept_job_path(const std::string& run_directory);
/// Whether a job file is the kept_job_path() of the directory that it is in. The job file of a run
/// of a command is; one that was submitted stays where it is, and its text is kept as well.
bool is_kept_job_path(std::string_view job_file);
/// The treatment of a link in the place of a job file: a task may have put one in the place of a
/// kept job file, to another job.
inline sys::Links links_at_job_file(std::string_view job_file) {
  return is_kept_job_path(job_file) ? sys::Links::RefuseAny : sys::Links::Follow;
}
/// The texts of the files that a submitted job file names (job/job_files.h). The file does not
/// exist if it names none.
std::string kept_files_path(const std::string& run_directory);

/// The results of messages to others, and the output of the job's `on-finish`.
std::string telling_log_path(const std::string& run_directory);
std::string on_finish_log_path(const std::string& run_directory);

/// The name there of the copy of the code that its tasks run, if there is one (run/code_copy.h).
constexpr std::string_view kCodeCopy = "trainyard.code";

/// True for what trainyard itself keeps in a run directory (journal, reports, lock, socket), so
/// that neither a group nor a task may have its name.
bool taken_in_run_directory(std::string_view name);

/// The place of the directories of a group's tasks, seen from the run directory, as in the journal:
/// "train", of a later submission "submissions/2/train"; if groups have no directory
/// (task.directory-grouping: false) "" and "submissions/2".
std::string group_directory(std::uint32_t batch, std::string_view group, bool by_group);
/// The place of the directories of a group's tasks in a round of a repeat, by the name that users
/// see: "clients.3"; "round-3" if groups have no directory.
std::string round_directory(std::string_view called, std::uint32_t round, bool by_group);

/// The directory of a task, seen from that of its group: "train/lr=1".
std::string task_directory(std::string_view group_directory, std::string_view id);

/// In a task's directory: the files that its attempts save for the next one.
constexpr std::string_view kCheckpoints = "checkpoints";

/// "stderr.log", and "stderr.2.log" of the second attempt.
std::string log_name(std::string_view stream, std::uint32_t attempt);
/// The paths of the logs of an attempt.
struct AttemptLogs {
  std::string stdout_path;
  std::string stderr_path;
};
/// The log to read first: that of standard error, or that of standard output where the former is
/// empty. Nothing where both are known to be empty. `size_of` is sys::known_size in a thread that
/// must not wait for a disk, else sys::size_of_file.
std::optional<std::string> log_with_text(AttemptLogs logs,
                                         std::optional<Bytes> (*size_of)(const std::string& path));
/// The directory for the output of the workers of a task: its own; for a later attempt a directory
/// in that, as a restarted worker has a number in the name of its log: "workers.2".
std::string workers_directory(const std::string& task_directory, std::uint32_t attempt);
/// "result.1.json" of the first attempt.
std::string result_name(std::uint32_t attempt);
/// A copy of that of the last attempt.
constexpr std::string_view kResult = "result.json";
/// The name of a group as a file name: parts that would lead out of the directory are replaced.
std::string report_name(std::string_view group);

// Files of a task's directory that stay when its content is deleted: results and logs.

/// "result.json", "result.1.json"
inline bool is_result_file(std::string_view name) {
  return name.starts_with("result.") && name.ends_with(".json");
}

/// "stdout.log", "stderr.2.log", "rank-1.log", "worker-0.log"; and files that a parallel run leaves
/// next to its logs, or in the log directory of a later attempt: "workers.json", "workers.2".
inline bool is_log_file(std::string_view name) {
  const bool is_ours = name.starts_with("stdout.") || name.starts_with("stderr.") ||
                       name.starts_with("rank-") || name.starts_with("worker-");
  return (is_ours && name.ends_with(".log")) || name.starts_with("workers.");
}

}  // namespace trainyard::run

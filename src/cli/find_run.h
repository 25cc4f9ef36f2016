// Finds the run that a command means, and its journal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "job/job.h"
#include "journal/reader.h"

namespace trainyard::cli {

/// The choice among several runs of a name, or of no name. A run that waits in the queue counts as
/// active for the commands that refuse, if a name stands for it or no run here has started: a
/// command that changes a run never takes an older one in its place. RefuseLive and Refuse are for
/// commands that change or resume a run: a name that only runs of other directories have is an
/// error for them.
enum class WhenSeveral : std::uint8_t {
  TakeLatest,  ///< An active run, else one that waits in the queue, else the latest.
  TakeNewest,  ///< The run that was submitted or started last, whatever its state.
  RefuseLive,  ///< Like TakeLatest, but an error if several are active.
  Refuse,      ///< Like RefuseLive, but an error if several have ended and none is active.
};

struct FoundRun {
  std::string directory;
  std::size_t candidates = 1;  ///< Number of runs, all of them ended, of which this is the latest.
  /// The newest run of the name that waits in the queue, where it is newer than the found run.
  std::string newer_in_queue = {};
  /// Where no run was named: a run of a larger number, which is not active and has a journal that
  /// cannot be read. The found run may have been resumed since.
  std::string unreadable = {};
  bool is_elsewhere = false;  ///< Named by its name, which no run of this directory has.
};

/// The run that a command means, by its directory. Absolute. It is named by one of these:
///
///   46           its number
///   digits       its name, as has_name() says: a run of this directory, else one elsewhere
///   last         the newest run of this directory
///   runs/digits  its directory, or one that has runs/ in it
///   sweep.yaml   its job file
///
/// Runs of this directory are in ./runs, in the runs/ of the configured workdir, and those that
/// were started or submitted from here. Without a name it is the one of these that was started or
/// resumed last, an active run before all others; if none has started, the newest in the queue.
/// Reads the journal of each. A number that is also the name of a directory with a run is an error,
/// too.
Result<std::string> find_run(const std::string& named,
                             WhenSeveral when_several = WhenSeveral::TakeLatest);

/// Finds the run as find_run() does, and says among how many it was chosen.
Result<FoundRun> choose_run(const std::string& named, WhenSeveral when_several);

/// "; name each run by itself: --needs 10 --needs 1" for the word "10,1" that is no run, with
/// `before` before each; empty where it is no list.
std::string cure_of_list(const std::string& named, std::string_view before);

/// The error of a word that names a job file which does not exist.
Error no_such_job_file(const std::string& named);

/// The newest run of this directory, then the others that have not ended: active, or in the queue.
/// An error if there is none.
Result<std::vector<std::string>> newest_and_unended_runs();

/// Whether a word is the number or the name of a run, as find_run() takes it.
bool names_run(const std::string& word);

/// The directories of all runs that are considered without a name.
std::vector<std::string> runs_here();

/// Whether a directory has a run (holds_run()), or is gone and was that of a submission that has not
/// ended.
bool is_run(const std::string& directory);

/// Whether a directory has a run: a run that is just beginning has no journal yet, and a run may
/// have lost it.
bool holds_run(const std::string& directory);

/// Whether runs are made in a directory, such as "~/experiments" with its runs/.
bool holds_run_directories(const std::string& directory);

/// Whether the run in a directory belongs to the job: its last execution was of this job file, or
/// of one that is gone, with the same name. A run whose journal cannot be read may belong to it.
bool is_run_of(const std::string& run_directory, const job::JobRuns& job);

/// The directories of the runs of a job, the latest first.
std::vector<std::string> runs_of(const job::JobRuns& job);

/// The socket of the active yard in a run directory.
Result<std::string> socket_of_run(journal::JournalReader& reader, const std::string& run);

/// The journal of a run. Waits for that of a run that is just beginning, at most ten seconds.
Result<journal::JournalReader> open_run(const std::string& run_directory);

}  // namespace trainyard::cli

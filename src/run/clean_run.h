// Deletes what a run has left behind: the directories of its tasks, its copy of the code, its
// reports, its journal.
//
// Deletes only files that the run's journal names: a run directory may be any directory, also one
// with programs of the user. The caller decides whether a run is to be deleted.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace trainyard::run {

struct CleanOptions {
  bool keep_results = false;  ///< The journal, the reports, and what tasks left as results.
  bool keep_logs = false;     ///< The journal, the reports, and the logs of tasks.
  bool only_look = false;     ///< Delete nothing, and report what would be deleted.
  /// Files of learned estimates that end with the run: those of the job file that is kept in its
  /// directory (job::learned_path() of kept_job_path()). They need not exist.
  std::vector<std::string> learned = {};

  [[nodiscard]] bool keeps_some() const { return keep_results || keep_logs; }
};

struct Cleaned {
  Bytes bytes;                      ///< Size of the deleted files.
  std::size_t entries = 0;          ///< Number of deleted files, links and directories.
  bool is_gone = false;             ///< And so is the directory itself.
  std::vector<std::string> failed;  ///< Paths that could not be deleted, with the cause; at most
                                    ///< kFailedMax.

  static constexpr std::size_t kFailedMax = 10;
};

/// An error, and nothing is deleted, if the run is active or its journal cannot be read. Nobody can
/// start it meanwhile. Follows no links below the run directory. A submission that has not begun
/// has no journal, and only files that trainyard itself has put into its directory are deleted: the
/// caller checks whether it may still begin.
Result<Cleaned> clean_run(const std::string& run_directory, const CleanOptions& options);

}  // namespace trainyard::run

// The directory of a run: is it free, who is in it, what did the last one leave.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "job/job.h"
#include "sys/files.h"

namespace trainyard::cli {

struct NewDirectory {
  std::string run_directory;
  bool typed = false;             ///< With --run-dir.
  std::string command_line;       ///< The command that asks for the directory.
  std::vector<std::string> only;  ///< Tasks of the job with --only; empty: all.
  job::JobRuns job;
};

/// A run directory that is locked.
struct ClaimedDirectory {
  sys::RunLock lock;
  bool has_begun = false;  ///< A run has begun in it, which resumes.
};

/// The reason why a directory was not claimed.
struct ClaimRefusal {
  Error error;
  bool is_taken = false;  ///< A run is or has been in it.
};

/// Makes the directory of a new run and locks it. An error when a run is or has been in it, with
/// the ways out as lines to type, which begin with the command line.
std::expected<ClaimedDirectory, ClaimRefusal> claim_new_directory(const NewDirectory& directory);

/// Locks the directory of an old run, and leaves its files unchanged.
Result<sys::RunLock> lock_old_directory(const std::string& run_directory);

/// Locks the directory of an old run and ends the processes that it left running, except those of
/// the agents with these keys.
std::expected<ClaimedDirectory, ClaimRefusal> claim_old_directory(
    const std::string& run_directory, const std::vector<std::string>& agents);

/// The way to put a run of `trainyard run` elsewhere, whatever named its directory.
constexpr std::string_view kRunElsewhere = "'--run-dir DIR' puts the run in another directory";

struct DirectoryReservation {
  std::string first;
  std::string (*marker)(const std::string&) = nullptr;  ///< Path of the file in a directory.
  std::string text;                                     ///< Contents of that file.
  std::string_view elsewhere = kRunElsewhere;           ///< The cure, if it cannot be made.
};

/// The first of `first`, `first`-2, `first`-3, ... that is free: from now on it is not, as it holds
/// a file with this text, at marker(<directory>). Leaves no directory behind if that fails.
Result<std::string> reserve_new_directory(const DirectoryReservation& reservation);

/// Removes the directory of a run that does not begin, and the directory runs/ above it, where
/// nothing else is in them.
void forget_directory(const std::string& run_directory);

/// Whether the run in this directory is that of a command, which no job file resumes.
bool is_run_of_command(const std::string& run_directory);

}  // namespace trainyard::cli

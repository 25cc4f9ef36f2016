// Which run a command means, and its journal.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "job/job.h"
#include "journal/reader.h"

namespace trainyard::cli {

/// What is right where a name, or none, may be several runs.
enum class WhenSeveral : std::uint8_t {
  TakeLatest,  ///< One at work before all others.
  RefuseLive,  ///< Where several are at work; else the latest.
  Refuse,      ///< Unless one of them alone is at work.
};

/// The run that a command means, by its directory. It is named by this, by its number or name
/// (cli/known_runs.h), by a directory that has runs/ in it, or by its job file. A name means the run
/// in ./runs before runs of this name elsewhere. Of several runs the one
/// that was started or resumed last is meant, one at work before all others. Where none is named,
/// it is so of those in ./runs and in the runs/ of the configured workdir. Absolute. Reads the
/// journal of each. An error, too, where a number is also the name of a directory with a run.
Result<std::string> find_run(const std::string& named,
                             WhenSeveral when_several = WhenSeveral::TakeLatest);

/// The directories of all runs that are looked at where none is named.
std::vector<std::string> runs_here();

/// Whether there is a run in a directory: one that is just beginning has no journal yet, and one
/// may have lost it.
bool holds_run(const std::string& directory);

/// Whether it is a place where runs are made, "~/experiments" with its runs/.
bool holds_run_directories(const std::string& directory);

/// Whether the run in a directory is one of the job: its last execution was of this job file, or of
/// one that is gone, with the same name. One whose journal cannot be read may be.
bool is_run_of(const std::string& run_directory, const job::JobRuns& job);

/// Of the runs of a job; empty when there is none.
std::string latest_run_of(const job::JobRuns& job);

/// Where the yard at work in a run directory listens.
Result<std::string> socket_of_run(journal::JournalReader& reader, const std::string& run);

/// The journal of a run. One that is just beginning is waited for, at most ten seconds.
Result<journal::JournalReader> open_run(const std::string& run_directory);

}  // namespace trainyard::cli

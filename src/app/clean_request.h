// The request of one `trainyard clean`, and its output: what became of each run. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/run_facts.h"
#include "base/result.h"
#include "base/time.h"
#include "run/clean_run.h"

namespace trainyard::app {

struct CleanWords {
  std::vector<std::string> runs;  ///< Empty: all that are found here and are old enough.
  std::string older;              ///< "30d"; empty: the runs are named, whenever they ended.
  std::vector<std::string> keep;  ///< "results", "logs"
  bool dry_run = false;
  bool json = false;
};

struct CleanRequest {
  std::optional<Duration> older = {};  ///< Only runs that ended at least this long ago.
  run::CleanOptions options = {};
};

/// The request of the typed words. An error for words that would select no run, or almost all.
Result<CleanRequest> read_clean_request(const CleanWords& words);

struct CleanedRun {
  KnownRun run;
  std::int64_t ended_unix_ms = 0;
  bool is_done = true;  ///< False if nothing could be deleted; `cleaned.failed` has the reason.
  run::Cleaned cleaned = {};
};

struct CleanOutcome {
  std::vector<CleanedRun> runs = {};
  bool some_ended = true;  ///< There are runs that could be deleted, whatever their age.
  bool failed = false;     ///< A run could not be read, or a file could not be deleted.
};

/// A line for each run, and the sum of the deleted files; a sentence if no run was selected.
std::string clean_text(const run::CleanOptions& options, const CleanOutcome& outcome,
                       std::int64_t now_unix_ms);
std::string clean_json(const CleanWords& words, const CleanOutcome& outcome);

}  // namespace trainyard::app

// The options of `run` and `retry`, which several files read, and what a queue and `run` agree on.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/retry_amounts.h"
#include "app/run_request.h"
#include "cli/command_job.h"
#include "cli/exit_code.h"
#include "job/job.h"
#include "job/job_files.h"
#include "model/ids.h"
#include "wire/control.h"

namespace trainyard::cli {

struct RunOptions {
  app::RunRequest request;
  std::string config_file;
  std::vector<std::string> settings;
  std::string allocations;   ///< As typed; it is among the settings as well.
  bool queued = false;       ///< Begun by the queue, which receives its news through descriptor 3.
  std::string job_text;      ///< The text of the job file, whatever the file contains now; empty:
                             ///< read the file.
  job::JobFiles job_files;   ///< And the files that it names, of which some may exist.
  CommandWords words;        ///< A command in the place of a job file.
  std::string command_line;  ///< As typed, without secrets: for the journal.
  std::string taken_over;    ///< For people: the options of the last execution that apply again;
                             ///< may be empty.
  /// Notes for people on a resumed run: its choice among several runs, and the files that a run
  /// that was copied or moved takes in place of the original's.
  std::vector<std::string> resume_notes;
  std::optional<job::MovedDirectory> moved_directory;  ///< See job::LoadOptions.
  std::vector<std::string> line_names;                 ///< See CommandJob.
  bool dry_run = false;
  bool json = false;
  /// If there are any, only these tasks of the run are run, and the others stay as they are.
  std::vector<wire::Retry> retries;
  /// The numbers in the journal of those of these tasks that have not finished.
  std::set<std::uint32_t> retried_rows;
  /// Finished tasks that run again: they have changed in the job file since, they ran other code,
  /// or tasks that they need run again. They are among the retries if there are any.
  struct Rerun {
    model::TaskIndex task;  ///< In the journal.
    std::string group;
    std::string id;
  };
  std::vector<Rerun> reruns;
  bool fresh = false;  ///< These start without their checkpoints.
  /// Called once the resumed run is at work, before it prints anything; not if it is refused.
  std::function<void()> on_resumed;
};
ExitCode run_command(const RunOptions& said);

/// Posts to the `notify` of the job why the run of these options did not start, and returns when
/// that is done or given up. In a process that the queue starts for it.
ExitCode post_not_started(const RunOptions& options, const std::string& reason);

ExitCode retry_command(const app::RetryRequest& request);

}  // namespace trainyard::cli

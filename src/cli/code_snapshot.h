// `--snapshot`: the copy of a work tree in which the tasks of a run work (run/code_copy.h), made
// for people, who see how far it is and may give it up.
#pragma once

#include <expected>
#include <functional>
#include <optional>
#include <string>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "job/job.h"
#include "run/code_copy.h"
#include "sys/depart.h"

namespace trainyard::cli {

struct SnapshotPlace {
  std::string directory;      ///< The directory where the tasks would run, in a work tree.
  std::string run_directory;  ///< Exists, and belongs to this run alone.
};

/// Makes the copy, until Ctrl-C or `is_given_up` ends that. If no copy is made, prints the reason,
/// leaves nothing of it or of the run directory, and returns the exit code.
std::expected<run::CodeCopy, ExitCode> make_snapshot(
    const SnapshotPlace& place, const std::function<bool()>& is_given_up = [] { return false; });

/// Has the tasks of a job work in the right directory: in a copy that is made now, in the one that
/// its run has already, or in the work tree itself. `departure` is that of a run that continues
/// without its terminal. The exit code if this fails; the error has been printed.
std::optional<ExitCode> enter_snapshot(const RunOptions& options, job::Job& job,
                                       const std::optional<sys::Departure>& departure);

/// As enter_snapshot(), for a job that is only shown: makes no copy.
Result<void> look_at_snapshot(const RunOptions& options, job::Job& job);

}  // namespace trainyard::cli

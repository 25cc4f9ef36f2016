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

/// Ctrl-C gives it up, and so does `is_given_up`. If it is not made, the reason has been printed,
/// nothing of it or of the run directory is left, and the exit code is returned.
std::expected<run::CodeCopy, ExitCode> make_snapshot(
    const SnapshotPlace& place, const std::function<bool()>& is_given_up = [] { return false; });

/// Has the tasks of a job work in the right directory: in a copy that is made now, in the one that
/// its run has already, or in the work tree itself. `departure` is that of a run that continues
/// without its terminal. The exit code if this fails; the error has been printed.
std::optional<ExitCode> enter_snapshot(const RunOptions& options, job::Job& job,
                                       const std::optional<sys::Departure>& departure);

/// The same for a job that is only shown: nothing is made.
Result<void> look_at_snapshot(const RunOptions& options, job::Job& job);

}  // namespace trainyard::cli

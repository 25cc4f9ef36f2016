// The options that a resumed run takes over from the command line of the execution before it.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "cli/commands.h"
#include "job/job.h"
#include "run/run_directory.h"

namespace trainyard::cli {

/// Fills in what `options` leave open: the run that they resume, and from its last execution the
/// job file, --config, and its --set before the new ones. An error, with the cure, where there is
/// no run, or where one of its files is gone.
Result<RunOptions> fill_in_resumed(RunOptions options);

/// The directory of the tasks of a command that was copied or moved together with the run. Nothing
/// where `job_text` is another kind of job file, or where the directory is still in its place.
std::optional<job::MovedDirectory> find_moved_directory(const std::string& job_text,
                                                        const run::RunMove& move);

}  // namespace trainyard::cli

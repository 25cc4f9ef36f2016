// The hidden command by which the queue notifies of a submission that did not start.
#pragma once

#include <string>

#include "cli/commands.h"
#include "cli/exit_code.h"

namespace trainyard::cli {

/// Posts to the `notify` of the job why the run of these options did not start, and returns when
/// that is done or given up.
ExitCode post_not_started(const RunOptions& options, const std::string& reason);

}  // namespace trainyard::cli

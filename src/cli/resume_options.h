// What a resumed run takes over from the command line of the execution before it.
#pragma once

#include "base/result.h"
#include "cli/commands.h"

namespace trainyard::cli {

/// `options` with what they leave open filled in: which run they go on with, and from its last
/// execution the job file, --config, and its --set before the new ones. An error, with what would
/// be right, where there is no run, or where one of its files is gone.
Result<RunOptions> fill_in_resumed(RunOptions options);

}  // namespace trainyard::cli

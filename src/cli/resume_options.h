// The options that a resumed run takes over from the command line of the execution before it.
#pragma once

#include "base/result.h"
#include "cli/commands.h"

namespace trainyard::cli {

/// Fills in what `options` leave open: the run that they resume, and from its last execution the
/// job file, --config, and its --set before the new ones. An error, with the cure, where there is
/// no run, or where one of its files is gone.
Result<RunOptions> fill_in_resumed(RunOptions options);

}  // namespace trainyard::cli

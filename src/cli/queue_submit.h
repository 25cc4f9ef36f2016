// A submission to this user's queue on this host.
#pragma once

#include "cli/commands.h"
#include "cli/exit_code.h"

namespace trainyard::cli {

/// Checks it, keeps a directory and a number for it, puts it into the queue, and prints the number.
ExitCode submit_to_queue(const SubmitOptions& options);

}  // namespace trainyard::cli

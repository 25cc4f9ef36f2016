// Which GPUs somebody wants back: a directory for each user beside the promise files of the machine
// (process/promise_board.h), with a file that all yards of that user keep to, and all yards to
// root's. Any thread.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "model/gpu_limits.h"

namespace trainyard::process {

/// Ours and root's, in all of these directories. What another user has put in their places counts
/// for nothing.
std::vector<model::Drain> read_drains(const std::vector<std::string>& directories);

/// Ours alone.
std::vector<model::Drain> read_own_drains(const std::vector<std::string>& directories);

/// Puts these in the place of ours, in the first directory where that can be done. What other users
/// have made there is never in the way.
Result<void> write_own_drains(const std::vector<std::string>& directories,
                              const std::vector<model::Drain>& drains);

}  // namespace trainyard::process

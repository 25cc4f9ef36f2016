// The GPUs to be drained: a directory for each user next to the promise files of the machine
// (process/promise_board.h). Its file binds all yards of that user; that of root binds all yards.
// Any thread.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "model/gpu_limits.h"

namespace trainyard::process {

/// Ours and root's, in all of these directories. Anything that another user has put in their places
/// is ignored.
std::vector<model::Drain> read_drains(const std::vector<std::string>& directories);

/// Ours alone.
std::vector<model::Drain> read_own_drains(const std::vector<std::string>& directories);

/// Replaces ours, in the first directory where that is possible. Nothing that other users have made
/// there is in the way.
Result<void> write_own_drains(const std::vector<std::string>& directories,
                              const std::vector<model::Drain>& drains);

}  // namespace trainyard::process

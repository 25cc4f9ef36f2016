// The active parallel runs of this user on this machine, and their status. For commands; any
// thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/time.h"

namespace trainyard::workers {

struct ParallelLook {
  /// The status of each run, as JSON: {"process", "command", "retries", "parallel": {...}}.
  std::vector<std::string> answers;
  /// Processes that cannot answer, as they are suspended: runs of some kind.
  std::vector<std::int64_t> silent;
};
/// Each is asked over its socket, and has so long to answer; one that is suspended is not waited
/// for.
ParallelLook look_at_parallel_runs(Duration within);

}  // namespace trainyard::workers

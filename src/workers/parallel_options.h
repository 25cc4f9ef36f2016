// The options of a parallel run, checked and completed. Of the machine they look only at
// the files that the options name.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "trainyard/parallel.h"
#include "workers/nats_address.h"

namespace trainyard::workers {

/// DI-engine's padding: none is from `start` on, one from it on, more are taken as they are. An
/// error: they are not as many as there are workers.
Result<std::vector<int>> padded(const std::vector<int>& given, int workers, int start,
                                const std::string& what);

struct WorkerPlan {
  int node = 0;
  int port = 0;
  std::vector<std::string> roles;
};
/// The servers that the options name. An error says what cannot be; none where it is attached to
/// nothing.
Result<std::vector<NatsAddress>> plan_servers(const ParallelOptions& options);

/// One for each worker. An error says what cannot be.
Result<std::vector<WorkerPlan>> plan_workers(const ParallelOptions& options);

}  // namespace trainyard::workers

// How much machine we may use: the hardware, less what cgroups (v1 and v2), CPU affinity, resource
// limits and an outer Slurm job keep from us.
#pragma once

#include <string>
#include <vector>

#include "model/resources.h"

namespace trainyard::io {

struct CapacityReading {
  Capacity capacity;
  std::vector<std::string> notes;  ///< What made it smaller, for people: "cgroup: 8 GB of memory".
};

/// Where to look: the real machine's paths, or a made-up tree in a test.
struct CapacitySources {
  std::string proc = "/proc";
  std::string cgroup = "/sys/fs/cgroup";
};

/// Reads it now. processes_max is what RLIMIT_NOFILE (raised to its hard limit first), RLIMIT_NPROC
/// and pids.max leave for tasks after the yard's and the keeper's own needs.
CapacityReading read_capacity(const CapacitySources& sources = {});

}  // namespace trainyard::io

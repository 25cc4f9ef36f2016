// How much machine we may use: the hardware, less what cgroups (v1 and v2), CPU affinity, resource
// limits and an outer Slurm job keep from us.
//
// Says what may be used at most, not what is free now (that is process/process_table.h). Any
// thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "model/resources.h"

namespace trainyard::hardware {

struct CapacityReading {
  model::Capacity capacity;
  std::vector<std::string> notes;  ///< Limits that made it smaller: "cgroup: 8 GB of memory".
};

/// Where to look: the real machine, or a made-up one in a test.
struct CapacitySources {
  std::string proc = "/proc";
  std::string cgroup = "/sys/fs/cgroup";

  /// Asked of the operating system where they are not given.
  struct Own {
    int cpus = 1;                          ///< In our CPU affinity.
    std::vector<std::string> environment;  ///< NAME=value.
    std::int64_t files_max = 0;            ///< RLIMIT_NOFILE; 0 is no limit.
    std::int64_t user_processes_max = 0;   ///< RLIMIT_NPROC; 0 is no limit, as it is for root.
  };
  std::optional<Own> own;
  /// False: this process stays as it is, and processes_max is what its limits leave now.
  bool raises_limits = true;
};

/// Reads it now. processes_max is what RLIMIT_NOFILE (raised to its hard limit first), RLIMIT_NPROC
/// and pids.max leave for tasks after the yard's and the keeper's own needs. Raising the limit
/// changes this process: fork the keeper before, so that tasks find the limit that the user set.
/// There is always one CPU at least: a task that asks for one runs in a smaller quota too, slower.
CapacityReading read_capacity(const CapacitySources& sources = {});

/// The memory that is available now: MemAvailable, or less where one of our control groups leaves
/// less (its limit, less what it uses, plus the file cache that can be dropped).
Bytes memory_available(const CapacitySources& sources = {});

/// Notices the kernel's out-of-memory killer at work: it leaves no message, only counters. The one of
/// our control group counts its own processes, whatever ran out of memory: the group, one above it
/// or the machine. Where the kernel keeps none for the group, the machine's has to do: it counts the
/// processes of everybody, containers included. Says that some process was killed, not which one. A
/// process that has moved to another group is not in the group's count. One thread.
class OomWatch {
 public:
  explicit OomWatch(const CapacitySources& sources = {});

  /// How many processes it has killed so far. Costs about 30 microseconds.
  [[nodiscard]] std::int64_t kills() const;

 private:
  std::string counter_;  ///< The file.
};

}  // namespace trainyard::hardware

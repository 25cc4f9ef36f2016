// The limits that a process has from the shell that started it, and passes on to its children: its
// CPUs (taskset), its nice value, and its resource limits (ulimit).
//
// A process may always give less of these than it has, and its CPUs as the machine has them. It may
// not give a lower nice value or a higher limit, unless it has the capabilities for that.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace trainyard::sys {

struct ProcessLimits {
  static constexpr std::uint64_t kUnlimited = ~std::uint64_t{0};

  struct Resource {
    std::uint64_t soft = kUnlimited;  ///< Bytes, seconds or a count, by resource.
    std::uint64_t hard = kUnlimited;
    friend bool operator==(const Resource&, const Resource&) = default;
  };

  std::vector<std::uint32_t> cpus;  ///< The numbers of those that it may use, ascending.
  int nice = 0;                     ///< -20 to 19.
  std::vector<Resource>
      resources;  ///< In the order of the kernel: that of RLIMIT_CPU is the first.

  friend bool operator==(const ProcessLimits&, const ProcessLimits&) = default;
};

/// The limits of a process of this user. Any thread.
Result<ProcessLimits> limits_of(std::int64_t pid);

/// Gives them to this process. A limit that it may not set comes as near as it may. Call while
/// there is one thread.
void take_limits(const ProcessLimits& limits);

/// Whether a process may give a lower nice value and higher limits than it has.
struct MayRaise {
  bool nice = false;    ///< CAP_SYS_NICE
  bool limits = false;  ///< CAP_SYS_RESOURCE
};

/// The limits that a process may raise, read from its /proc/PID/status. Any thread.
MayRaise may_raise(std::int64_t pid);

/// The parts of `wanted` that a process with the limits `has` cannot give: "nice is 10, not 0",
/// "nofile is at most 1024, not 4096". The names of limits are those of limits.conf(5) and
/// prlimit(1). Pure.
std::vector<std::string> not_to_be_given(const ProcessLimits& has, MayRaise may,
                                         const ProcessLimits& wanted);

}  // namespace trainyard::sys

// What a task asks for, and what a machine has. Plain values.
#pragma once

#include <compare>
#include <cstdint>
#include <string_view>

#include "base/bytes.h"
#include "base/time.h"

namespace trainyard {

/// A number of CPUs in thousandths, so that sums are exact. A task may ask for half a CPU, or none.
struct Cpus {
  std::int64_t milli = 0;

  friend auto operator<=>(Cpus, Cpus) = default;
  friend constexpr Cpus operator+(Cpus a, Cpus b) { return {a.milli + b.milli}; }
  friend constexpr Cpus operator-(Cpus a, Cpus b) { return {a.milli - b.milli}; }
};

constexpr Cpus cpus(std::int64_t count) { return {count * 1000}; }

/// What a task is promised while it runs.
struct Request {
  Bytes memory;      ///< Of the host, per task.
  Cpus cpus;         ///< Per task.
  int gpus = 0;      ///< How many GPUs.
  Bytes gpu_memory;  ///< On each of its GPUs.

  friend auto operator<=>(const Request&, const Request&) = default;
};

/// What the place where the tasks run offers them in all: the machine, or the part of it that
/// cgroups, CPU affinity and an outer Slurm job leave to us.
struct Capacity {
  Bytes memory;
  Cpus cpus;
  /// How many task processes the operating system lets us have at once; 0 is no limit.
  int processes_max = 0;
  /// Why processes_max is what it is, as in "512 open files"; empty when there is no limit. Points
  /// at words that live as long as the program.
  std::string_view processes_max_reason;

  friend bool operator==(const Capacity&, const Capacity&) = default;
};

/// What an attempt used, as far as it was seen. Of the whole process tree.
struct Usage {
  Bytes memory_peak;     ///< Anonymous memory of the tree, summed; the largest of the samples.
  Duration cpu_time{0};  ///< User and system.

  friend bool operator==(const Usage&, const Usage&) = default;
};

}  // namespace trainyard

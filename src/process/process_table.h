// Reads the processes of the machine: the attempt to which each belongs, and their usage.
//
// Reads /proc, starts nothing, stops nothing (but for end_processes). One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"
#include "hardware/capacity.h"

namespace trainyard::process {

struct TreeUsage {
  bool root_lives = false;  ///< It has not ended. In a reading alone.
  /// Anonymous memory (RssAnon) of all living processes of the tree, and once what they share
  /// (RssShmem), if that is worth counting.
  Bytes memory;
  Bytes shared;  ///< The part of it that processes share: trees may have mapped the same.
  /// The most that one of its processes has in memory beside that: pages of files, and what it
  /// shares. Nothing of a tree that shares memory.
  Bytes others;
  Duration cpu_time{0};  ///< User and system of the living and of those they have waited for.
  std::vector<std::int64_t> pids;  ///< Living processes, in order.
};

struct MachineReading {
  Bytes memory_available;  ///< On the machine, or less if a cgroup leaves less.
  /// 0 to 1 of our CPUs, since the last reading; 0 at the first. The time of this process and all
  /// its descendants (those that have ended too) is not theirs. Time that a hypervisor took away
  /// is.
  double cpu_used_by_others = 0;
  std::vector<TreeUsage> trees;  ///< For each root asked for, in order.
};

class ProcessTable {
 public:
  explicit ProcessTable(const hardware::CapacitySources& sources = {});
  ~ProcessTable();
  ProcessTable(ProcessTable&&) noexcept;
  ProcessTable& operator=(ProcessTable&&) noexcept;

  /// Reads the machine and the trees of `roots` (process ids that lead a session of their own). A
  /// process belongs to a root when it is in its session or descends from one that is. Keeps its
  /// descriptors and buffers between calls: costs about 10 microseconds a process on the machine.
  /// The trees in `sharing` are forks that share memory with the program: only the rest counts. To
  /// measure that costs 11 ms for each GiB that is shared, so each process is measured at most so
  /// often that it takes a fiftieth of the time.
  MachineReading read(std::span<const std::int64_t> roots,
                      const std::set<std::int64_t>& sharing = {});

  /// The maximum number of processes of a tree that look_at() reads.
  static constexpr std::size_t kLookedAtMax = 64;
  /// Reads one tree and nothing else: its root, and what descends from that by the main threads of
  /// its processes. Costs 20 microseconds for each of them, however many others there are.
  [[nodiscard]] TreeUsage look_at(std::int64_t root) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The processes that a dead run has left. Any user can put any variable in an environment, so the
/// user counts as well.
struct Leftovers {
  std::string mark;                       ///< NAME=value, which is in their environment.
  uid_t user = 0;                         ///< The user who started them (real uid).
  std::vector<std::string> but_for = {};  ///< Processes that have one of these as well are spared.
};

/// The user whose processes a run in this directory can have left: this one; for root, who may end
/// the processes of everybody, the owner of the directory.
uid_t user_of_run(const std::string& run_directory);

/// The pids of these processes, in order; ourselves and those we descend from excepted. Reads the
/// environment of each process on the machine.
std::vector<std::int64_t> processes_left(const Leftovers& leftovers);

/// Ends these processes (TERM, KILL after `grace`), ourselves and those we descend from excepted.
/// Returns how many there were. An error when some are still there 5 s after KILL.
Result<int> end_processes(const Leftovers& leftovers, Duration grace);

}  // namespace trainyard::process

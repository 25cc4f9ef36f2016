// All processes of the machine as /proc shows them, and which of them make up a tree.
//
// Reads only. One thread for each ProcessScan.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "sys/descriptor.h"

namespace trainyard::sys {

/// One process, from /proc/<pid>/stat. CPU time is in clock ticks.
struct ProcessStat {
  std::int64_t pid = 0;
  std::int64_t parent = 0;
  std::int64_t group = 0;
  std::int64_t session = 0;
  char state = '?';                 ///< 'Z' for one that has ended and waits to be reaped.
  std::int64_t cpu_ticks = 0;       ///< User and system, its own.
  std::int64_t children_ticks = 0;  ///< The same of the children that it has waited for.
  std::int64_t start_ticks = 0;     ///< With the pid, names a process for good.
  std::int64_t major_faults = 0;    ///< Number of waits for its own memory to come from a disk.
  bool of_kernel = false;           ///< One of the kernel's own threads.
  bool has_only_forked = false;     ///< It has not executed a program of its own.

  friend bool operator==(const ProcessStat&, const ProcessStat&) = default;
};

/// Nothing when the text is not of that form. A name with spaces and brackets in it is fine.
std::optional<ProcessStat> parse_process_stat(std::string_view text);

class ProcessScan {
 public:
  explicit ProcessScan(const std::string& proc = "/proc");

  /// Reads all processes but the kernel's own threads, in order of their pids; empty without /proc.
  /// The span is good until the next call. Costs about 10 microseconds a process.
  std::span<const ProcessStat> read_all();

  /// Reads one; nothing when it is gone.
  [[nodiscard]] std::optional<ProcessStat> read(std::int64_t pid) const;

  /// Reads a small file of a process, at most `at_most` of it: "statm", "environ". Empty when it
  /// cannot be read.
  [[nodiscard]] std::string read_text(std::int64_t pid, std::string_view file,
                                      std::size_t at_most) const;

  /// The path of the program that a process runs. Empty when it cannot be read.
  [[nodiscard]] std::string program_of(std::int64_t pid) const;

 private:
  void list_pids();

  Descriptor proc_;
  std::vector<std::int64_t> pids_;
  std::vector<ProcessStat> processes_;
  /// Threads of the kernel at the last look, in order. A large machine has thousands.
  std::vector<std::int64_t> of_kernel_;
  std::chrono::steady_clock::time_point looked_at_;
};

/// Whether it is suspended, by Ctrl-Z or by its tracer. False if it is gone.
bool is_suspended(std::int64_t pid);

constexpr int kNoTree = -1;

/// Says for each process which tree it is in: the one that `own_tree` names for it, else the one of
/// its parent, else kNoTree. `processes` are in order of their pids.
std::vector<int> label_trees(std::span<const ProcessStat> processes,
                             const std::function<int(const ProcessStat&)>& own_tree);

/// The children that this thread has, as the kernel lists them.
///
/// Neither waits for them nor signals them. For processes of one thread.
class ChildList {
 public:
  ChildList();

  /// The present children, including ended ones that have not been waited for. Costs a few
  /// microseconds; on a kernel without CONFIG_PROC_CHILDREN a look at all processes.
  std::vector<pid_t> read();

 private:
  Descriptor file_;  ///< /proc/self/task/<tid>/children.
  ProcessScan scan_;
};

}  // namespace trainyard::sys

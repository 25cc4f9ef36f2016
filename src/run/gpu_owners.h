// The owners of the processes that a driver shows on GPUs: a running task, an ended one, or a
// stranger.
//
// The tree of a task's processes is read with each sample of the machine. A process that is younger
// than that, and is shown in between, is looked up in /proc: it is a stranger only if it comes from
// none of ours. A process that is not there, as it is outside of our container or has just died, is
// a stranger from the second look on: one that dies of a lack of memory is shown a moment longer.
// One thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "hardware/gpu_driver.h"
#include "model/ids.h"

namespace trainyard::run {

class GpuOwners {
 public:
  /// The processes of a task as they were started: those of its ranks.
  void started(model::TaskIndex task, std::span<const std::int64_t> pids);

  /// All processes of tasks that run, as they were seen.
  void sampled(std::map<std::int64_t, model::TaskIndex> owners) { owners_ = std::move(owners); }

  /// More processes of a task that were seen in between.
  void also(model::TaskIndex task, std::span<const std::int64_t> pids);

  /// The task has ended: processes that the driver still shows belong neither to the next attempt
  /// nor to a stranger.
  void ended(model::TaskIndex task);

  /// The running task of a process; nothing: it is a former task's, or a stranger. Reads /proc for
  /// a process that was not seen before.
  std::optional<model::TaskIndex> task_of(std::int64_t pid);

  /// Whether it belongs to no task, and never did.
  bool is_stranger(std::int64_t pid) { return !task_of(pid) && strangers_.contains(pid); }

  /// At the end of a look: forgets those that no GPU shows any more.
  void keep_only(const std::vector<hardware::GpuState>& shown);

 private:
  std::map<std::int64_t, model::TaskIndex> roots_;   ///< Of running tasks.
  std::map<std::int64_t, model::TaskIndex> owners_;  ///< The same, with all their descendants.
  std::set<std::int64_t> former_;                    ///< Of ended attempts.
  std::set<std::int64_t> strangers_;                 ///< Looked up before.
  std::set<std::int64_t> unseen_;                    ///< Not in /proc, since this look.
};

}  // namespace trainyard::run

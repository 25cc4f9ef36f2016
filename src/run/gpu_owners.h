// Whose the processes are that a driver shows on GPUs: of which task that runs, of one that has
// ended, or of a stranger.
//
// The tree of a task's processes is read with each sample of the machine. A process that is younger
// than that, and is shown in between, is looked up in /proc: it is a stranger only where it comes
// from none of ours. One that is not there, as it is outside of our container or has just died, is
// a stranger from the second look on: who dies of a lack of memory is shown a moment longer. One
// thread.
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

  /// Some more of a task's that were seen in between.
  void also(model::TaskIndex task, std::span<const std::int64_t> pids);

  /// What the driver still shows of its processes is neither the next attempt's nor a stranger's.
  void ended(model::TaskIndex task);

  /// Which task that runs a process is of; nothing: it is a former one's, or a stranger.
  /// The task of a process. Reads /proc for a process that was not seen before.
  std::optional<model::TaskIndex> task_of(std::int64_t pid);

  /// It is no task's, nor was it.
  bool is_stranger(std::int64_t pid) { return !task_of(pid) && strangers_.contains(pid); }

  /// At the end of a look: forgets those that no GPU shows any more.
  void keep_only(const std::vector<hardware::GpuState>& shown);

 private:
  std::map<std::int64_t, model::TaskIndex> roots_;   ///< Of tasks that run.
  std::map<std::int64_t, model::TaskIndex> owners_;  ///< The same, with all that they have started.
  std::set<std::int64_t> former_;                    ///< Of attempts that have ended.
  std::set<std::int64_t> strangers_;                 ///< Looked up before.
  std::set<std::int64_t> unseen_;                    ///< They are not in /proc, since this look.
};

}  // namespace trainyard::run

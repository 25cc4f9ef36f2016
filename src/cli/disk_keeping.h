// The effect of `keep` of a job file during a run: tasks that are not among the best of their group
// lose their files on the disk except their logs and results.
//
// The choice of tasks is in job/best_kept.h, and a separate process deletes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "cli/job_tasks.h"
#include "job/best_kept.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/turn.h"
#include "process/sweeper.h"

namespace trainyard::cli {

class DiskKeeping {
 public:
  /// `tasks` must outlive it.
  explicit DiskKeeping(JobTasks& tasks);

  /// After every committed turn. Deletes nothing itself, and waits for nothing.
  void see(const model::Turn& turn);

  /// The run is over. Waits for the remaining deletions, and reports all.
  void finish();

 private:
  void add(const model::BatchAdded& batch);
  void sweep();
  void hear(std::vector<process::Sweeper::Swept> swept);
  void wait();
  void tell();

  JobTasks& tasks_;
  job::BestKept kept_;
  process::Sweeper sweeper_;
  std::uint32_t known_ = 0;   ///< Tasks of all batches so far.
  bool more_follow_ = false;  ///< Batches that may need the files.
  std::vector<model::TaskIndex> to_go_;
  std::size_t gone_ = 0;  ///< The number of to_go_ that are with the sweeper, or gone.
  std::map<std::size_t, Bytes> given_back_;  ///< By the number of job::BestKept::told().
  std::vector<std::string> failed_;          ///< At most kFailedMax.
  static constexpr std::size_t kFailedMax = 10;
};

}  // namespace trainyard::cli

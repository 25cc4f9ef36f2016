// What `keep` of a job file comes to while a run is at work: tasks that are not among the best of
// their group lose what they hold on the disk but their logs and results.
//
// Who may go is decided in job/best_kept.h, and the deleting is done in a process of its own.
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

  /// The run is over. Waits for what is still to be deleted, and tells what was.
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
  bool more_follow_ = false;  ///< Batches, who may need what is there.
  std::vector<model::TaskIndex> to_go_;
  std::size_t gone_ = 0;                     ///< So many of to_go_ are with the sweeper, or gone.
  std::map<std::size_t, Bytes> given_back_;  ///< By the number of job::BestKept::told().
  std::vector<std::string> failed_;          ///< At most kFailedMax.
  static constexpr std::size_t kFailedMax = 10;
};

}  // namespace trainyard::cli

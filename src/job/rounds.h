// The current round of a repeat, and whether all its tasks have succeeded, so that the next one is
// to be added to the run. Called every turn, and queries nothing.
//
// Belongs to one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "job/jobs.h"
#include "model/command.h"
#include "model/event.h"
#include "model/status.h"
#include "model/turn.h"

namespace trainyard::job {

class Rounds {
 public:
  /// After every committed turn. `jobs` has all that were added to the run.
  void see(const model::Turn& turn, const Jobs& jobs);

  /// All tasks of the last round have finished, or were not needed.
  [[nodiscard]] bool is_over() const { return has_begun_ && left_ == 0; }
  /// The last one that was added.
  [[nodiscard]] std::uint32_t round() const { return round_; }

 private:
  void add(const model::BatchAdded& batch, const Jobs& jobs);
  void change(const model::TaskChanged& task);

  bool has_begun_ = false;
  std::uint32_t round_ = 0;
  std::uint32_t known_ = 0;  ///< Tasks of all batches so far.
  std::uint32_t first_ = 0;  ///< The first task of the batch of the round.
  /// By task of that batch, from the first: whether the round waits for it.
  std::vector<bool> is_left_;
  std::vector<bool> is_repeated_;
  std::size_t left_ = 0;  ///< The number of true values in is_left_.
};

}  // namespace trainyard::job

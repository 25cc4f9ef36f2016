// The time that a task that shared its GPUs would have taken alone on them, from the times at which
// others were there. Pure.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.h"

namespace trainyard::job {

/// A task on its GPUs, which have the driver's numbers: "0,2".
struct StayOnGpus {
  std::string_view gpus;
  Instant from;
  Instant until;
};

/// The measured work of tasks that share a GPU: `best` of them together do `factor` times the work
/// of one. 0: not known.
struct WorkTogether {
  int best = 0;
  double factor = 0;
};

class TimeAlone {
 public:
  /// All stays on GPUs must be added before the first call of of().
  void add(const StayOnGpus& stay);

  /// The time that one of the tasks would have taken alone, within these two bounds except for
  /// rounding. For fewer tasks than the best number, the gain is interpolated linearly. More tasks
  /// than that do not do more work, and are assumed to do at least half the work of one. If nothing
  /// was measured, sharing is assumed to cost at least nothing and to gain at least nothing.
  struct Bounds {
    Duration least;
    Duration most;  ///< Never more than it took.

    friend bool operator==(const Bounds&, const Bounds&) = default;
  };
  [[nodiscard]] Bounds of(const StayOnGpus& stay, const WorkTogether& work);

 private:
  /// The times when a task came to a GPU (1) or left it (-1); after sorting, the number there from
  /// then.
  using Presence = std::vector<std::pair<Instant, int>>;

  void sort();

  std::map<std::string, Presence, std::less<>> on_gpu_;
  bool sorted_ = false;
};

}  // namespace trainyard::job

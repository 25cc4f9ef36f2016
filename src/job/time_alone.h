// How long a task that shared its GPUs would have taken alone on them, by who was there when. Pure.
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

/// What tasks that share a GPU do together, by what was measured of them: `best` of them do
/// `factor` times the work of one. 0: nobody knows.
struct WorkTogether {
  int best = 0;
  double factor = 0;
};

class TimeAlone {
 public:
  /// All that were on GPUs are added before anything is asked.
  void add(const StayOnGpus& stay);

  /// What one of them would have taken alone, but for rounding between these two. Fewer than the
  /// best number do so much less, in a straight line. Of more than those it is known that they do
  /// not do more, and taken to be so that they do at least half the work of one; where nobody knows
  /// anything, that sharing costs at least nothing and gains at least nothing.
  struct Bounds {
    Duration least;
    Duration most;  ///< Never more than it took.

    friend bool operator==(const Bounds&, const Bounds&) = default;
  };
  [[nodiscard]] Bounds of(const StayOnGpus& stay, const WorkTogether& work);

 private:
  /// When somebody came to a GPU (1) or left it (-1); after sorting, how many are there from then.
  using Presence = std::vector<std::pair<Instant, int>>;

  void sort();

  std::map<std::string, Presence, std::less<>> on_gpu_;
  bool sorted_ = false;
};

}  // namespace trainyard::job

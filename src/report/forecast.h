// The time that a run will still take, from the time that its tasks have taken so far. Pure
// arithmetic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/time.h"

namespace trainyard::report {

/// A task that runs now.
struct RunningTask {
  std::uint32_t group = 0;
  Duration so_far{0};
};

struct Remaining {
  Duration time{0};
  bool at_least = false;  ///< There are groups of which nothing has finished yet.
};

class Forecast {
 public:
  /// Adds a group with this number of tasks that have not ended.
  void add_group(int left) { groups_.push_back({.left = left}); }

  /// An attempt that did the work of its task took so long.
  void finished(std::uint32_t group, Duration took);
  /// A task has ended, however it did.
  void ended(std::uint32_t group);
  /// A task that had ended waits or runs again.
  void begins_anew(std::uint32_t group);
  /// The number of tasks that run at once.
  void at_once(int tasks);

  /// Every task that is left takes as long as the mean of its group, as many at once as now (or as
  /// lately, when the last ones run). Nothing while nothing is known.
  [[nodiscard]] std::optional<Remaining> remaining(std::span<const RunningTask> running) const;

 private:
  struct Group {
    int left = 0;
    std::int64_t count = 0;
    Duration sum{0};
  };
  std::vector<Group> groups_;
  int at_once_ = 0;
};

}  // namespace trainyard::report

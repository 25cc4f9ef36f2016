// A model of the speed of tasks that share GPUs: each has a part of a GPU that keeps it busy when
// it is alone there. As long as these parts are no more than the GPU, no task is slowed down; else
// all of them get less, by the same factor. If they disturb each other as well, an oversubscribed
// GPU loses a part of its capacity for each task beyond the first.
//
// Times the tasks of the look-ahead and of `trainyard plan`. A run measures the cost of sharing
// instead (schedule/paces.h).
//
// Pure. Only tasks on the GPUs of a task that comes or goes are timed again.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/time.h"

namespace trainyard::schedule {

class CardShares {
 public:
  /// When a task will have done its work, as things are now.
  struct Timed {
    std::uint32_t task = 0;
    Duration ends{0};
  };

  /// `crowding` is that part, in thousandths.
  explicit CardShares(std::size_t cards, int crowding = 0)
      : crowding_(crowding), sums_(cards), on_(cards) {}

  /// A task that keeps `share` of each of these cards busy, in thousandths up to 1000, and takes
  /// `work` alone. Returns all whose end is another now, itself among them.
  std::vector<Timed> begin(std::uint32_t task, const std::vector<std::uint32_t>& cards, int share,
                           Duration work, Duration now);
  /// The task has left. Returns the others whose end has changed. Nothing for a task that is not
  /// here.
  std::vector<Timed> leave(std::uint32_t task, Duration now);

  /// When one that is here will have done its work.
  [[nodiscard]] std::optional<Duration> end_of(std::uint32_t task) const;

 private:
  struct AtWork {
    std::vector<std::uint32_t> cards;
    int share = 0;
    double left = 0;  ///< Work that was left at `since`.
    double pace = 1;
    Duration since{0};
    Duration ends{0};
  };

  [[nodiscard]] double pace_on(const std::vector<std::uint32_t>& cards) const;
  void time_anew(const std::vector<std::uint32_t>& cards, Duration now, std::vector<Timed>& out);

  int crowding_;
  std::vector<int> sums_;                       ///< By card: the sum of the shares of its tasks.
  std::vector<std::vector<std::uint32_t>> on_;  ///< By card: its tasks.
  std::map<std::uint32_t, AtWork> at_work_;
};

}  // namespace trainyard::schedule

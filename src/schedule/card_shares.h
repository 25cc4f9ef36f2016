// How fast tasks go that share GPUs, by a model: each has a part of a GPU that keeps it busy when
// it is alone there. As long as these parts are no more than the GPU, nobody is slowed down; else
// all of them get less, by the same factor. Where they disturb each other as well, a GPU that is
// wanted by more than it is loses a part of what it could do by each of them beyond the first.
//
// Pure. Only those on the GPUs of one that comes or goes are timed anew.
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
  /// It has left. Returns the others whose end is another now. Nothing for one that is not here.
  std::vector<Timed> leave(std::uint32_t task, Duration now);

  /// When one that is here will have done its work.
  [[nodiscard]] std::optional<Duration> end_of(std::uint32_t task) const;

 private:
  struct AtWork {
    std::vector<std::uint32_t> cards;
    int share = 0;
    double left = 0;  ///< Of its work, at `since`.
    double pace = 1;
    Duration since{0};
    Duration ends{0};
  };

  [[nodiscard]] double pace_on(const std::vector<std::uint32_t>& cards) const;
  void time_anew(const std::vector<std::uint32_t>& cards, Duration now, std::vector<Timed>& out);

  int crowding_;
  std::vector<int> sums_;                       ///< By card: what those on it want of it.
  std::vector<std::vector<std::uint32_t>> on_;  ///< By card: who is there.
  std::map<std::uint32_t, AtWork> at_work_;
};

}  // namespace trainyard::schedule

// The times to look at attempts that have just begun. An attempt may be over before the next look
// of a second: its peak is known by these. Pure: the time is an argument.
//
// Bounded, however many begin at once: there is a maximum of followed attempts and of looks in one
// go, and a pause between two goes. The others are seen by the look of a second.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "base/time.h"
#include "model/ids.h"

namespace trainyard::run {

class FreshLooks {
 public:
  /// Times of looks after the start of an attempt.
  static constexpr std::array<Duration, 4> kAfter{Duration{50}, Duration{100}, Duration{200},
                                                  Duration{400}};
  static constexpr std::size_t kFollowedMax = 256;
  static constexpr std::size_t kAtOnceMax = 24;
  static constexpr Duration kPause{25};

  /// Its processes began now.
  void add(model::TaskIndex task, Instant now);
  /// It has ended.
  void remove(model::TaskIndex task) { followed_.erase(task); }

  /// The time of the next look.
  [[nodiscard]] std::optional<Instant> next() const;
  /// The tasks to look at now, in order; each is then followed on to its next look.
  std::vector<model::TaskIndex> take_due(Instant now);

 private:
  struct Followed {
    Instant began;
    std::size_t looks = 0;  ///< Number of looks so far.
  };
  [[nodiscard]] static Instant due_at(const Followed& followed) {
    return followed.began + kAfter.at(followed.looks);
  }

  std::map<model::TaskIndex, Followed> followed_;
  Instant not_before_;
};

}  // namespace trainyard::run

// When attempts that have just begun are looked at, so that the peak of one that is over before the
// next look of a second is known as well. Pure: it is told the time.
//
// Bounded, however many begin at once: so many are followed, so many are looked at in one go, and
// there is a pause between two goes. The others are seen by the look of a second.
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
  /// So long after the start of an attempt.
  static constexpr std::array<Duration, 4> kAfter{Duration{50}, Duration{100}, Duration{200},
                                                  Duration{400}};
  static constexpr std::size_t kFollowedMax = 256;
  static constexpr std::size_t kAtOnceMax = 24;
  static constexpr Duration kPause{25};

  /// Its processes began now.
  void add(model::TaskIndex task, Instant now);
  /// It has ended.
  void remove(model::TaskIndex task) { followed_.erase(task); }

  /// When somebody is to be looked at next.
  [[nodiscard]] std::optional<Instant> next() const;
  /// Those who are to be looked at now, in order; each is then followed on to its next look.
  std::vector<model::TaskIndex> take_due(Instant now);

 private:
  struct Followed {
    Instant began;
    std::size_t looks = 0;  ///< That it has had.
  };
  [[nodiscard]] static Instant due_at(const Followed& followed) {
    return followed.began + kAfter.at(followed.looks);
  }

  std::map<model::TaskIndex, Followed> followed_;
  Instant not_before_;
};

}  // namespace trainyard::run

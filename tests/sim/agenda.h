// The future events of a made-up world, with their times. All machines of one share it, and so its
// clock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "base/time.h"

namespace trainyard::sim {

class Agenda {
 public:
  using Step = std::move_only_function<void()>;

  [[nodiscard]] Instant now() const { return now_; }
  /// Steps of the same moment are done in the order in which they were added. A step whose moment
  /// is over is done next.
  void at(Instant when, Step step) { steps_.emplace(std::pair{when, number()}, std::move(step)); }
  /// The time of the next step; there must be one.
  [[nodiscard]] Instant next() const { return steps_.begin()->first.first; }
  void do_next() {
    auto first = steps_.extract(steps_.begin());
    pass_to(first.key().first);
    first.mapped()();
  }
  /// The clock shows at least that.
  void pass_to(Instant then) { now_ = std::max(now_, then); }
  /// A number that nothing else of this world has.
  std::uint64_t number() { return next_number_++; }

 private:
  Instant now_;
  std::uint64_t next_number_ = 1;
  std::map<std::pair<Instant, std::uint64_t>, Step> steps_;
};

}  // namespace trainyard::sim

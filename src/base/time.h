// Time as the program sees it: counted from the start of the run, so that two runs compare and a
// clock that is set back changes nothing.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>

namespace trainyard {

using Duration = std::chrono::milliseconds;

/// A point in the run. A resumed run goes on counting where the run before it stopped. Only the
/// machine makes one; everybody else is handed it.
struct Instant {
  Duration since_start{0};

  friend auto operator<=>(const Instant&, const Instant&) = default;
  friend Instant operator+(Instant at, Duration later) { return {at.since_start + later}; }
  friend Duration operator-(Instant a, Instant b) { return a.since_start - b.since_start; }
};

}  // namespace trainyard

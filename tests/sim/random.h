// Values made from random-looking numbers: the same seed gives the same values on every machine,
// which the standard distributions do not promise.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/split_mix64.h"
#include "base/time.h"

namespace trainyard::sim {

class Random {
 public:
  explicit Random(std::uint64_t seed) : numbers_(seed) {}

  /// A number from 0 up to and without `limit`.
  std::uint64_t below(std::uint64_t limit) { return numbers_.next() % limit; }

  /// A number from `low` up to and with `high`.
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(high - low) + 1));
  }
  Duration between(Duration low, Duration high) {
    return Duration{between(low.count(), high.count())};
  }
  Bytes between(Bytes low, Bytes high) { return {between(low.count, high.count)}; }

  bool one_in(std::uint64_t n) { return below(n) == 0; }

  /// True so many times out of a thousand.
  bool per_mille(std::uint64_t n) { return below(1000) < n; }

  /// A new source of its own, so that what one part draws does not move what another draws.
  Random split() { return Random(numbers_.next()); }

 private:
  SplitMix64 numbers_;
};

}  // namespace trainyard::sim

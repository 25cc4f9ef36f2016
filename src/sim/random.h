// Numbers that look random and are not: the same seed gives the same ones on every machine, which
// the standard distributions do not promise.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/time.h"

namespace trainyard::sim {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  /// A number from 0 up to and without `limit`.
  std::uint64_t below(std::uint64_t limit) { return next() % limit; }

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
  Random split() { return Random(next()); }

 private:
  // SplitMix64: tiny, and good enough to make up a workload.
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31U);
  }

  std::uint64_t state_;
};

}  // namespace trainyard::sim

// How long tasks have trained.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.h"

namespace trainyard::schedule {

struct Durations {
  std::int64_t count = 0;
  Duration sum{0};
  Duration longest{0};

  void add(Duration took) {
    ++count;
    sum += took;
    longest = std::max(longest, took);
  }
};

}  // namespace trainyard::schedule

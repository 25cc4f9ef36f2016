// For tests alone: waits for what another process does.
#pragma once

#include <chrono>
#include <functional>

#include <poll.h>

#include "base/time.h"

namespace trainyard::sys {

/// What everything in a test takes less than, whatever else the machine does.
constexpr Duration kLongEnough{30'000};

/// Waits until `holds` says so; false when it did not in time.
inline bool eventually(const std::function<bool()>& holds) {
  const auto end = std::chrono::steady_clock::now() + kLongEnough;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    ::poll(nullptr, 0, 1);
  }
  return true;
}

}  // namespace trainyard::sys

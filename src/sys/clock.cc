#include "sys/clock.h"

#include <chrono>
#include <cstdint>

namespace trainyard::sys {

std::int64_t unix_milliseconds() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
}

}  // namespace trainyard::sys

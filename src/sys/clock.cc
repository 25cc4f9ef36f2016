#include "sys/clock.h"

#include <chrono>
#include <ctime>

namespace trainyard::sys {

std::int64_t unix_milliseconds() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
}

LocalTime local_time() {
  constexpr int kMonday = 6;  // From Sunday, as the C library counts, in a week of seven.
  const std::time_t now = std::time(nullptr);
  std::tm here{};
  if (::localtime_r(&now, &here) == nullptr) return {};
  return {.day = (here.tm_wday + kMonday) % 7, .minute = here.tm_hour * 60 + here.tm_min};
}

std::int64_t last_midnight_unix_s() {
  const std::time_t now = std::time(nullptr);
  std::tm day{};
  if (::localtime_r(&now, &day) == nullptr) return now;
  day.tm_hour = day.tm_min = day.tm_sec = 0;
  day.tm_isdst = -1;
  return std::mktime(&day);
}

}  // namespace trainyard::sys

// How many GPUs the runs of a user may have together, by the day and the hour: `limits` of the
// configuration. Pure: callers pass the time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace trainyard::model {

/// On these days, from this minute to that one; until before from: to that minute of the next day.
struct GpuHours {
  std::uint8_t days = 0;  ///< One bit each, Monday's is the lowest.
  int from_minute = 0;
  int until_minute = 0;
  int gpus_max = 0;

  friend bool operator==(const GpuHours&, const GpuHours&) = default;
};

struct GpuLimits {
  std::optional<int> usual;     ///< At all other times; nothing: any number.
  std::vector<GpuHours> hours;  ///< Of those that hold at once the strictest counts.

  friend bool operator==(const GpuLimits&, const GpuLimits&) = default;
};

/// A moment of the week where we are.
struct WeekMoment {
  int day = 0;  ///< 0 is Monday.
  int minute = 0;
};

struct GpuLimitNow {
  std::optional<int> gpus_max;
  std::string until;  ///< "19:00"; empty where it does not change by the hour.

  friend bool operator==(const GpuLimitNow&, const GpuLimitNow&) = default;
};

/// A GPU that somebody wants back: nothing new is given of it.
struct Drain {
  std::string uuid;
  std::int64_t until_unix_s = 0;  ///< 0: until somebody says so.
  bool now = false;               ///< Tasks that run there are stopped, and retried elsewhere.

  friend bool operator==(const Drain&, const Drain&) = default;
};

GpuLimitNow limit_at(const GpuLimits& limits, WeekMoment now);

/// Reads "Mon-Fri 08:00-19:00", "Sat,Sun 00:00-24:00", "22:00-06:00" (every day), without how many.
Result<GpuHours> parse_hours(std::string_view text);

/// "Mon,Tue 08:00-19:00=2", as they are kept, one after the other with "; " between; and back.
std::string to_text(const std::vector<GpuHours>& hours);
Result<std::vector<GpuHours>> hours_from(std::string_view text);

}  // namespace trainyard::model

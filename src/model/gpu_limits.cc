#include "model/gpu_limits.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <expected>
#include <system_error>

#include <fmt/format.h>

#include "base/nearest.h"

namespace trainyard::model {
namespace {

constexpr std::array<std::string_view, 7> kDays{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"};
constexpr int kDayMinutes = 24 * 60;
constexpr int kHourMinutes = 60;
constexpr std::uint8_t kEveryDay = 0x7F;

std::string clock_text(int minute) {
  return fmt::format("{:02}:{:02}", minute / kHourMinutes, minute % kHourMinutes);
}

bool is_on(const GpuHours& hours, int day) {
  return (hours.days >> static_cast<unsigned>(day) & 1U) != 0;
}

bool holds(const GpuHours& hours, WeekMoment now) {
  const int yesterday = (now.day + 6) % 7;
  if (hours.from_minute < hours.until_minute) {
    return is_on(hours, now.day) && now.minute >= hours.from_minute &&
           now.minute < hours.until_minute;
  }
  return (is_on(hours, now.day) && now.minute >= hours.from_minute) ||
         (is_on(hours, yesterday) && now.minute < hours.until_minute);
}

std::optional<int> number_at(const GpuLimits& limits, WeekMoment now) {
  std::optional<int> strictest;
  for (const GpuHours& hours : limits.hours) {
    if (holds(hours, now)) strictest = std::min(strictest.value_or(hours.gpus_max), hours.gpus_max);
  }
  return strictest ? strictest : limits.usual;
}

WeekMoment later(WeekMoment moment, int minutes) {
  const int minute = moment.minute + minutes;
  return {.day = (moment.day + minute / kDayMinutes) % 7, .minute = minute % kDayMinutes};
}

std::optional<int> number_in_text(std::string_view text, int most) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  return whole && number >= 0 && number <= most ? std::optional(number) : std::nullopt;
}

/// "08:00" to "24:00".
std::optional<int> minute_of(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos || text.size() - colon != 3) return std::nullopt;
  const std::optional<int> hour = number_in_text(text.substr(0, colon), 24);
  const std::optional<int> minute = number_in_text(text.substr(colon + 1), 59);
  if (!hour || !minute || *hour * kHourMinutes + *minute > kDayMinutes) return std::nullopt;
  return *hour * kHourMinutes + *minute;
}

Result<int> day_of(std::string_view text) {
  const auto* const found = std::ranges::find(kDays, text);
  if (found != kDays.end()) return static_cast<int>(found - kDays.begin());
  const auto meant = nearest(text, kDays);
  return std::unexpected(
      Error{fmt::format("'{}' is not a day of the week (Mon, Tue, ..., Sun){}", text,
                        meant ? fmt::format(" (did you mean '{}'?)", *meant) : "")});
}

/// "Mon-Fri", "Sat,Sun", "Fri-Mon".
Result<std::uint8_t> days_of(std::string_view text) {
  std::uint8_t days = 0;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    std::string_view part = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    const std::size_t dash = part.find('-');
    const Result<int> first = day_of(part.substr(0, dash));
    if (!first) return std::unexpected(first.error());
    const Result<int> last = dash == std::string_view::npos ? first : day_of(part.substr(dash + 1));
    if (!last) return std::unexpected(last.error());
    for (int day = *first;; day = (day + 1) % 7) {
      days = static_cast<std::uint8_t>(days | (1U << static_cast<unsigned>(day)));
      if (day == *last) break;
    }
  }
  return days;
}

}  // namespace

GpuLimitNow limit_at(const GpuLimits& limits, WeekMoment now) {
  GpuLimitNow found{.gpus_max = number_at(limits, now)};
  // It changes only where hours begin or end: the nearest of these at which it does.
  int nearest_change = 8 * kDayMinutes;
  for (const GpuHours& hours : limits.hours) {
    for (const int edge : {hours.from_minute % kDayMinutes, hours.until_minute % kDayMinutes}) {
      const int to_edge = (edge - now.minute + kDayMinutes) % kDayMinutes;
      for (int days = 0; days <= 7; ++days) {
        const int minutes = to_edge + days * kDayMinutes;
        if (minutes == 0 || minutes >= nearest_change) continue;
        if (number_at(limits, later(now, minutes)) != found.gpus_max) nearest_change = minutes;
      }
    }
  }
  if (nearest_change < 8 * kDayMinutes) found.until = clock_text(later(now, nearest_change).minute);
  return found;
}

Result<GpuHours> parse_hours(std::string_view text) {
  GpuHours hours{.days = kEveryDay};
  const std::size_t space = text.find(' ');
  if (space != std::string_view::npos) {
    const Result<std::uint8_t> days = days_of(text.substr(0, space));
    if (!days) return std::unexpected(days.error());
    hours.days = *days;
    text.remove_prefix(space + 1);
  }
  const std::size_t dash = text.find('-');
  const std::optional<int> from = minute_of(text.substr(0, dash));
  const std::optional<int> until =
      dash == std::string_view::npos ? std::nullopt : minute_of(text.substr(dash + 1));
  if (!from || !until || *from == *until || *from == kDayMinutes) {
    return std::unexpected(Error{fmt::format(
        "'{}' is not a valid time of day; write it as in 'Mon-Fri 08:00-19:00'", text)});
  }
  hours.from_minute = *from;
  hours.until_minute = *until;
  return hours;
}

std::string to_text(const std::vector<GpuHours>& hours) {
  std::string text;
  for (const GpuHours& one : hours) {
    std::string days;
    for (int day = 0; day < 7; ++day) {
      if (is_on(one, day))
        days += (days.empty() ? "" : ",") + std::string(kDays.at(static_cast<std::size_t>(day)));
    }
    text += fmt::format("{}{} {}-{}={}", text.empty() ? "" : "; ", days,
                        clock_text(one.from_minute), clock_text(one.until_minute), one.gpus_max);
  }
  return text;
}

Result<std::vector<GpuHours>> hours_from(std::string_view text) {
  constexpr int kGpusMost = 1'000;
  constexpr std::size_t kHoursMost = 64;
  std::vector<GpuHours> all;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(';'), text.size());
    std::string_view one = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    while (text.starts_with(' ')) text.remove_prefix(1);
    const std::size_t equals = one.find('=');
    const std::optional<int> gpus = equals == std::string_view::npos
                                        ? std::nullopt
                                        : number_in_text(one.substr(equals + 1), kGpusMost);
    if (!gpus) {
      return std::unexpected(Error{
          fmt::format("'{}' has no number of GPUs; write it as in 'Mon-Fri 08:00-19:00=2'", one)});
    }
    Result<GpuHours> hours = parse_hours(one.substr(0, equals));
    if (!hours) return std::unexpected(hours.error());
    hours->gpus_max = *gpus;
    all.push_back(*hours);
    if (all.size() > kHoursMost) return std::unexpected(Error{"more than 64 times of the week"});
  }
  return all;
}

}  // namespace trainyard::model

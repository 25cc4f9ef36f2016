#include "base/duration_text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "base/result.h"
#include "base/time.h"

namespace trainyard {
namespace {

struct TimeUnit {
  std::string_view name;
  double milliseconds;
};

constexpr double kSecond = 1000;
constexpr double kMinute = 60 * kSecond;
constexpr double kHour = 60 * kMinute;
constexpr double kDay = 24 * kHour;
constexpr double kLongestDuration = 3653 * kDay;

constexpr std::array<TimeUnit, 7> kTimeUnits{{
    {.name = "ms", .milliseconds = 1},
    {.name = "s", .milliseconds = kSecond},
    {.name = "m", .milliseconds = kMinute},
    {.name = "min", .milliseconds = kMinute},
    {.name = "h", .milliseconds = kHour},
    {.name = "d", .milliseconds = kDay},
    {.name = "w", .milliseconds = 7 * kDay},
}};

Error not_a_duration(std::string_view text) {
  return {
      fmt::format("'{}' is not a valid time; write it as in '90s', '2h30m' or '1:30:00'", text)};
}

Result<Duration> bounded(std::string_view text, double milliseconds) {
  if (!std::isfinite(milliseconds) || milliseconds > kLongestDuration) {
    return std::unexpected(Error{fmt::format("'{}' is longer than ten years", text)});
  }
  return Duration{static_cast<Duration::rep>(std::llround(milliseconds))};
}

/// "MM:SS", "HH:MM:SS", each with "D-" before it.
Result<Duration> parse_clock(std::string_view text) {
  double days = 0;
  std::string_view rest = text;
  const auto dash = text.find('-');
  const auto whole_number = [](std::string_view part, double& value) {
    std::uint32_t number = 0;
    const char* const end = part.data() + part.size();
    const auto [stop, status] = std::from_chars(part.data(), end, number);
    value = number;
    return status == std::errc{} && stop == end && !part.empty();
  };
  if (dash != std::string_view::npos) {
    if (!whole_number(text.substr(0, dash), days)) return std::unexpected(not_a_duration(text));
    rest = text.substr(dash + 1);
  }
  double sum = 0;
  int parts = 0;
  while (true) {
    const auto colon = rest.find(':');
    double part = 0;
    if (!whole_number(rest.substr(0, colon), part) || (parts > 0 && part >= 60)) {
      return std::unexpected(not_a_duration(text));
    }
    sum = (sum * 60) + part;
    ++parts;
    if (colon == std::string_view::npos) break;
    rest.remove_prefix(colon + 1);
  }
  if (parts > 3 || parts < 2) return std::unexpected(not_a_duration(text));
  return bounded(text, (days * kDay) + (sum * kSecond));
}

}  // namespace

Result<Duration> parse_duration(std::string_view text) {
  if (text.find(':') != std::string_view::npos) return parse_clock(text);
  if (text == "0") return Duration{0};
  double sum = 0;
  std::string_view rest = text;
  if (rest.empty()) return std::unexpected(not_a_duration(text));
  while (!rest.empty()) {
    double number = 0;
    const char* const end = rest.data() + rest.size();
    const auto [stop, status] = std::from_chars(rest.data(), end, number, std::chars_format::fixed);
    if (status != std::errc{} || !std::isfinite(number) || number < 0)
      return std::unexpected(not_a_duration(text));
    rest.remove_prefix(static_cast<std::size_t>(stop - rest.data()));
    while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
    std::size_t letters = 0;
    while (letters < rest.size() && rest[letters] >= 'a' && rest[letters] <= 'z') ++letters;
    const std::string_view unit = rest.substr(0, letters);
    if (unit.empty()) {
      return std::unexpected(
          Error{fmt::format("'{}' has no unit (did you mean '{}s' or '{}m'?)", text, text, text)});
    }
    double factor = 0;
    for (const TimeUnit& known : kTimeUnits) {
      if (known.name == unit) factor = known.milliseconds;
    }
    if (factor == 0) return std::unexpected(not_a_duration(text));
    sum += number * factor;
    rest.remove_prefix(letters);
    while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  }
  return bounded(text, sum);
}

std::string to_text(Duration duration) {
  const std::int64_t milliseconds = duration.count();
  if (milliseconds < 60'000) {
    return fmt::format("{:.1f} s", static_cast<double>(milliseconds) / kSecond);
  }
  const std::int64_t seconds = milliseconds / 1000;
  const std::int64_t days = seconds / 86'400;
  const std::int64_t hours = seconds / 3600 % 24;
  const std::int64_t minutes = seconds / 60 % 60;
  if (days > 0) return fmt::format("{}d {}:{:02}:{:02}", days, hours, minutes, seconds % 60);
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, seconds % 60);
  return fmt::format("{}:{:02}", minutes, seconds % 60);
}

}  // namespace trainyard

#include "base/duration_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <iterator>
#include <optional>
#include <ranges>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

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
constexpr std::int64_t kSecondMs = 1000;
constexpr std::int64_t kMinuteMs = 60 * kSecondMs;
constexpr std::int64_t kHourMs = 60 * kMinuteMs;
constexpr std::int64_t kDayMs = 24 * kHourMs;
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

bool is_letter(char byte) { return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z'); }

Error not_a_duration(std::string_view text) {
  return Error{
      fmt::format("'{}' is not a valid time; write it as in '90s', '2h30m' or '1:30:00'", text)};
}

Result<Duration> bounded(std::string_view text, double milliseconds) {
  if (!std::isfinite(milliseconds) || milliseconds > kLongestDuration) {
    return std::unexpected(Error{fmt::format("'{}' is longer than ten years", text)});
  }
  const Duration duration{static_cast<Duration::rep>(std::llround(milliseconds))};
  // A limit of 0 is none: what is almost 0 must not become one.
  if (milliseconds > 0 && duration == Duration{0}) {
    return std::unexpected(Error{fmt::format("'{}' is shorter than a millisecond", text)});
  }
  return duration;
}

/// The numbers of "12:30:00". No value: something else, or more than three of them.
std::optional<std::vector<double>> clock_numbers(std::string_view text) {
  constexpr std::size_t kNumbersMax = 3;
  std::vector<double> numbers;
  for (const auto part : std::views::split(text, ':')) {
    std::uint32_t number = 0;
    const char* const end = part.data() + part.size();
    const auto [stop, status] = std::from_chars(part.data(), end, number);
    if (status != std::errc{} || stop != end || numbers.size() == kNumbersMax) return std::nullopt;
    numbers.push_back(number);
  }
  return numbers;
}

/// The mistake in "1:30", whose numbers are `first` and `second`.
Error ambiguous(std::string_view text, double first, double second) {
  const auto written = [=](std::string_view unit, std::string_view smaller) {
    return second == 0 ? fmt::format("{}{}", first, unit)
                       : fmt::format("{}{}{}{}", first, unit, second, smaller);
  };
  return Error{fmt::format("'{}' is ambiguous (did you mean '{}' or '{}'?)", text,
                           written("m", "s"), written("h", "m"))};
}

/// The mistake in "90" and "1d12". `unit` is in front of the last number; may be empty.
Error without_unit(std::string_view text, std::string_view unit) {
  constexpr std::array<std::array<std::string_view, 2>, 5> kSmaller{
      {{"w", "d"}, {"d", "h"}, {"h", "m"}, {"m", "s"}, {"min", "s"}}};
  for (const auto& [larger, smaller] : kSmaller) {
    if (larger != unit) continue;
    return Error{fmt::format("'{}' has no unit (did you mean '{}{}'?)", text, text, smaller)};
  }
  return Error{fmt::format("'{}' has no unit (did you mean '{}s' or '{}m'?)", text, text, text)};
}

/// The mistake in "30M" and "2 hours". `unit` is a part of `text`.
Error unknown_unit_of_time(std::string_view text, std::string_view unit) {
  std::string wanted;
  for (const char letter : unit) wanted += static_cast<char>(letter | 0x20);
  if (wanted.size() > 1 && wanted.ends_with('s') && wanted != "ms") wanted.pop_back();
  constexpr std::array<std::string_view, 5> kLong{"second", "minute", "hour", "day", "week"};
  for (const std::string_view word : kLong) {
    if (wanted.size() > 1 && word.starts_with(wanted)) wanted = word.substr(0, 1);
  }
  const bool is_known =
      std::ranges::any_of(kTimeUnits, [&](const TimeUnit& known) { return known.name == wanted; });
  const bool is_last = unit.data() + unit.size() == text.data() + text.size();
  if (!is_known || !is_last) {
    return Error{fmt::format("'{}': unknown unit '{}'; use ms, s, m, h, d or w", text, unit)};
  }
  return Error{fmt::format("'{}': unknown unit '{}' (did you mean '{}{}'?)", text, unit,
                           text.substr(0, text.size() - unit.size()), wanted)};
}

/// The forms of Slurm: "M:S", "H:M:S", "D-H", "D-H:M", "D-H:M:S". The first number of a clock has
/// no maximum ("90:00", "0-48:00"); those behind it are below 60.
Result<Duration> parse_clock(std::string_view text) {
  const auto dash = text.find('-');
  const bool has_days = dash != std::string_view::npos;
  const auto days = clock_numbers(has_days ? text.substr(0, dash) : "0");
  const auto clock = clock_numbers(has_days ? text.substr(dash + 1) : text);
  const bool is_valid =
      days && days->size() == 1 && clock && clock->size() >= (has_days ? 1U : 2U) &&
      std::all_of(clock->begin() + 1, clock->end(), [](double part) { return part < 60; });
  if (!is_valid) return std::unexpected(not_a_duration(text));
  // Behind days the first number is hours, without them the last one is seconds.
  double unit = has_days || clock->size() == 3 ? kHour : kMinute;
  double sum = days->front() * kDay;
  for (const double part : *clock) {
    sum += part * unit;
    unit /= 60;
  }
  return bounded(text, sum);
}

/// "22:00", "22:00:00", "24:00".
bool is_time_of_day(std::string_view text) {
  constexpr double kHoursMax = 24;
  const auto numbers = clock_numbers(text);
  return numbers && numbers->size() >= 2 && numbers->front() <= kHoursMax;
}

}  // namespace

Result<Duration> parse_duration(std::string_view text) {
  if (text.find_first_of(":-") != std::string_view::npos) {
    const auto numbers = clock_numbers(text);
    Result<Duration> time = parse_clock(text);
    if (!time || !numbers || numbers->size() > 2) return time;
    return std::unexpected(ambiguous(text, numbers->front(), numbers->back()));
  }
  if (text == "0") return Duration{0};
  double sum = 0;
  std::string_view rest = text;
  std::string_view unit;
  if (rest.empty()) return std::unexpected(not_a_duration(text));
  while (!rest.empty()) {
    double number = 0;
    const char* const end = rest.data() + rest.size();
    const auto [stop, status] = std::from_chars(rest.data(), end, number, std::chars_format::fixed);
    if (status != std::errc{} || !std::isfinite(number) || number < 0)
      return std::unexpected(not_a_duration(text));
    rest.remove_prefix(static_cast<std::size_t>(stop - rest.data()));
    while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
    if (rest.empty()) return std::unexpected(without_unit(text, unit));
    unit = {rest.begin(), std::ranges::find_if_not(rest, is_letter)};
    if (unit.empty()) return std::unexpected(not_a_duration(text));
    double factor = 0;
    for (const TimeUnit& known : kTimeUnits) {
      if (known.name == unit) factor = known.milliseconds;
    }
    if (factor == 0) return std::unexpected(unknown_unit_of_time(text, unit));
    sum += number * factor;
    rest.remove_prefix(unit.size());
    while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  }
  return bounded(text, sum);
}

Result<Duration> parse_slurm_time(std::string_view text) { return parse_clock(text); }

Result<Duration> parse_delay(std::string_view text) {
  const Result<Duration> delay = parse_clock(text);
  if (!delay || !is_time_of_day(text)) return parse_duration(text);
  return std::unexpected(
      Error{fmt::format("'{}' may mean {} or a time of day; write '{}', or for a time of day how "
                        "long it is until then, as in '2h30m'",
                        text, exact_text(*delay), exact_text(*delay))});
}

std::string to_text(Duration duration) {
  constexpr std::int64_t kHalfTenthMs = 50;
  if (duration.count() < kMinuteMs - kHalfTenthMs) {
    return fmt::format("{:.1f} s", static_cast<double>(duration.count()) / kSecond);
  }
  // A time that rounds to 60.0 s is a minute.
  const std::int64_t milliseconds = std::max(duration.count(), kMinuteMs);
  const std::int64_t precision = milliseconds >= kDayMs    ? kHourMs
                                 : milliseconds >= kHourMs ? kMinuteMs
                                                           : kSecondMs;
  return exact_text(Duration{milliseconds - (milliseconds % precision)});
}

std::string exact_text(Duration duration) {
  std::int64_t rest = duration.count();
  if (rest < kMinuteMs) return fmt::format("{} s", static_cast<double>(rest) / kSecond);
  std::string text;
  for (const auto& [unit, name] : {std::pair{kDayMs, 'd'}, {kHourMs, 'h'}, {kMinuteMs, 'm'}}) {
    if (rest >= unit) fmt::format_to(std::back_inserter(text), "{}{}", rest / unit, name);
    rest %= unit;
  }
  if (rest > 0) text += fmt::format("{}s", static_cast<double>(rest) / kSecond);
  return text;
}

}  // namespace trainyard

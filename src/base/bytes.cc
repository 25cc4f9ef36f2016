#include "base/bytes.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <expected>
#include <system_error>

#include <fmt/format.h>

namespace trainyard {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr double kKilo = 1000;
constexpr double kKibi = 1024;
constexpr std::array<Unit, 15> kUnits{{
    {.name = "B", .factor = 1},
    {.name = "kB", .factor = kKilo},
    {.name = "KB", .factor = kKilo},
    {.name = "MB", .factor = kKilo * kKilo},
    {.name = "GB", .factor = kKilo * kKilo * kKilo},
    {.name = "TB", .factor = kKilo * kKilo * kKilo * kKilo},
    {.name = "KiB", .factor = kKibi},
    {.name = "MiB", .factor = kKibi * kKibi},
    {.name = "GiB", .factor = kKibi * kKibi * kKibi},
    {.name = "TiB", .factor = kKibi * kKibi * kKibi * kKibi},
    {.name = "K", .factor = kKibi},
    {.name = "M", .factor = kKibi * kKibi},
    {.name = "G", .factor = kKibi * kKibi * kKibi},
    {.name = "T", .factor = kKibi * kKibi * kKibi * kKibi},
    {.name = "bytes", .factor = 1},
}};

bool same_but_for_case(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if ((a[i] | 0x20) != (b[i] | 0x20)) return false;
  }
  return true;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// Whether somebody wrote a number as in 1e9.
bool is_exponent(std::string_view unit) {
  if (unit.empty() || (unit.front() | 0x20) != 'e') return false;
  unit.remove_prefix(1);
  if (!unit.empty() && (unit.front() == '+' || unit.front() == '-')) unit.remove_prefix(1);
  return !unit.empty() && unit.front() >= '0' && unit.front() <= '9';
}

/// The error for a number without a unit that would be less than a mebibyte.
Error no_unit(std::string_view text, std::string_view number, double value) {
  // Suggests only amounts that a machine may have.
  constexpr double kMostGigabytes = 1000;
  constexpr double kMostMegabytes = 1'000'000;
  if (value < kMostGigabytes) {
    return Error{fmt::format("'{}' has no unit and would be {} {} (did you mean '{}GB' or '{}MB'?)",
                             text, number, number == "1" ? "byte" : "bytes", number, number)};
  }
  if (value < kMostMegabytes) {
    return Error{fmt::format("'{}' has no unit and would be {} bytes (did you mean '{}MB'?)", text,
                             number, number)};
  }
  return Error{fmt::format(
      "'{}' has no unit and would be less than 1 MiB; write the unit, as in '{}B'", text, number)};
}

Error unknown_unit(std::string_view text, std::string_view number, std::string_view unit) {
  if (unit.size() == 2 && unit[1] == 'b' && same_but_for_case(unit, "gb")) {
    return Error{fmt::format("'{}' is in bits: write '{}GB'", text, number)};
  }
  if (unit.size() == 2 && unit[1] == 'b' && same_but_for_case(unit, "mb")) {
    return Error{fmt::format("'{}' is in bits: write '{}MB'", text, number)};
  }
  if (unit == "b" || unit == "kb" || unit == "Kb" || unit == "tb" || unit == "Tb" ||
      unit == "bit" || unit == "bits") {
    return Error{fmt::format("'{}' is in bits: write it in bytes, as in '{}GB' or '{}MiB'", text,
                             number, number)};
  }
  if (unit.starts_with(',')) {
    return Error{fmt::format("'{}' has a comma; write decimals with a point, as in '4.5GB'", text)};
  }
  if (is_exponent(unit)) {
    return Error{fmt::format("'{}' is not a valid size; write it with a unit, as in '1GB'", text)};
  }
  // Kubernetes writes 'Gi'.
  const std::string meant = unit.ends_with('i') ? fmt::format("{}B", unit) : std::string(unit);
  for (const Unit& known : kUnits) {
    if (same_but_for_case(known.name, meant)) {
      return Error{fmt::format("'{}': unknown unit '{}' (did you mean '{}{}'?)", text, unit, number,
                               known.name)};
    }
  }
  return Error{
      fmt::format("'{}': unknown unit '{}'; use B, kB, MB, GB, TB, or KiB, MiB, GiB, TiB "
                  "(also K, M, G, T)",
                  text, unit)};
}

}  // namespace

Result<Bytes> parse_bytes(std::string_view text) {
  const std::string_view whole = text;
  text = trimmed(text);
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, status] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (status != std::errc{} || !std::isfinite(number)) {
    return std::unexpected(
        Error{fmt::format("'{}' is not a valid size; write it as in '4GB'", whole)});
  }
  const std::string_view digits(text.data(), static_cast<std::size_t>(rest - text.data()));
  if (number < 0) {
    return std::unexpected(Error{fmt::format("'{}': a size cannot be negative", whole)});
  }
  const std::string_view unit = trimmed({rest, static_cast<std::size_t>(end - rest)});
  constexpr double kSmallestBare = kKibi * kKibi;
  if (unit.empty() && number != 0 && number < kSmallestBare) {
    return std::unexpected(no_unit(whole, digits, number));
  }
  double factor = unit.empty() ? 1 : 0;
  for (const Unit& known : kUnits) {
    if (known.name == unit) factor = known.factor;
  }
  if (factor == 0) return std::unexpected(unknown_unit(text, digits, unit));
  const double bytes = std::floor(number * factor);
  constexpr double kLargest = 9.2e18;
  if (bytes > kLargest) {
    return std::unexpected(Error{fmt::format("'{}' is more than any machine has", whole)});
  }
  return Bytes{static_cast<std::int64_t>(bytes)};
}

std::string to_text(Bytes bytes) {
  constexpr std::array<std::string_view, 5> kNames{"B", "kB", "MB", "GB", "TB"};
  auto amount = static_cast<double>(bytes.count);
  std::size_t name = 0;
  // 999.95 and more would be shown as 1000.0.
  while (std::abs(amount) >= 999.95 && name + 1 < kNames.size()) {
    amount /= kKilo;
    ++name;
  }
  const double rounded = std::round(amount * 10) / 10;
  if (name < 2 || rounded == std::floor(rounded) || std::abs(amount) >= 99.95) {
    return fmt::format("{:.0f} {}", amount, kNames[name]);
  }
  return fmt::format("{:.1f} {}", amount, kNames[name]);
}

std::string to_text(Bytes bytes, Bytes other) {
  std::string text = to_text(bytes);
  if (bytes == other || text != to_text(other)) return text;
  return fmt::format("{} bytes", bytes.count);
}

std::string text_at_most(Bytes bytes) {
  // Smaller than the smallest step of to_text(), so that the next lower text is not skipped.
  constexpr std::int64_t kStep = 2000;
  Bytes lower = bytes;
  std::string text = to_text(lower);
  while (parse_bytes(text).value_or(bytes) > bytes) {
    lower.count -= lower.count / kStep + 1;
    text = to_text(lower);
  }
  std::erase(text, ' ');
  return text;
}

}  // namespace trainyard

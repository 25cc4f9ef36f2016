#include "cli/value_checks.h"

#include <charconv>
#include <cstddef>
#include <system_error>

#include <fmt/format.h>

#include "base/duration_text.h"
#include "base/result.h"
#include "settings/setting_value.h"

namespace trainyard::cli {
namespace {

template <typename Number>
bool is_within(const std::string& typed, Number least, Number most) {
  Number number{};
  const char* const end = typed.data() + typed.size();
  const auto [rest, failed] = std::from_chars(typed.data(), end, number);
  return failed == std::errc() && rest == end && number >= least && number <= most;
}

}  // namespace

ValueCheck whole_number_within(std::int64_t least, std::int64_t most) {
  return [least, most](const std::string& typed) {
    return is_within(typed, least, most)
               ? std::string()
               : fmt::format("'{}' is not a whole number from {} to {}", typed, least, most);
  };
}

ValueCheck number_within(double least, double most) {
  return [least, most](const std::string& typed) {
    return is_within(typed, least, most)
               ? std::string()
               : fmt::format("'{}' is not a number from {} to {}", typed, least, most);
  };
}

ValueCheck time_within(Duration least, Duration most) {
  return [least, most](const std::string& typed) {
    const Result<Duration> time = parse_duration(typed);
    if (!time) return time.error().message;
    if (*time >= least && *time <= most) return std::string();
    return fmt::format("'{}' is not a time from {} to {}", typed, exact_text(least),
                       exact_text(most));
  };
}

ValueCheck value_of_setting(settings::Setting setting) {
  const settings::SettingKind kind = settings::settings()[static_cast<std::size_t>(setting)].kind;
  return [kind](const std::string& typed) {
    const Result<std::string> value = settings::parse_setting(kind, typed);
    return value ? std::string() : value.error().message;
  };
}

}  // namespace trainyard::cli

#include "job/retry_text.h"

#include <array>
#include <expected>

#include <fmt/format.h>

#include "base/nearest.h"
#include "base/time.h"
#include "schedule/another_try.h"
#include "settings/setting_value.h"

namespace trainyard::job {

Result<int> parse_retries(std::string_view text) {
  const Result<int> count = settings::parse_count(text);
  if (count && *count <= schedule::kRetriesMax) return *count;
  return std::unexpected(
      Error{fmt::format("'{}' is not a whole number from 0 to {}", text, schedule::kRetriesMax)});
}

Result<bool> parse_retry_on(std::string_view text) {
  constexpr std::array<std::string_view, 1> kWords{"time-limit"};
  bool time_limit = false;
  while (!text.empty()) {
    const auto comma = text.find(',');
    const std::string_view word = text.substr(0, comma);
    if (word != kWords.front()) {
      const auto meant = nearest(word, kWords);
      return std::unexpected(
          Error{meant ? fmt::format("'{}' is not time-limit (did you mean '{}'?)", word, *meant)
                      : fmt::format("must be time-limit, not '{}'; 'oom-retries' sets the "
                                    "retries after running out of memory",
                                    word)});
    }
    time_limit = true;
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  return time_limit;
}

std::string to_text(const model::Retries& retries) {
  std::string text;
  if (retries.failures > 0) {
    text = fmt::format("{} after a failure{}", retries.failures,
                       retries.after_time_limit ? " or the time limit" : "");
    if (retries.delay > Duration{0}) {
      text += fmt::format(", the first after {}", schedule::delay_text(retries.delay));
    }
  } else if (retries.after_time_limit || retries.delay > Duration{0}) {
    text = "none after a failure (0 retries)";
  }
  if (retries.out_of_memory) {
    text +=
        fmt::format("{}{} after out of memory", text.empty() ? "" : "; ", *retries.out_of_memory);
  }
  return text;
}

}  // namespace trainyard::job

#include "report/replaced_numbers.h"

#include <fmt/format.h>

#include "report/terminal_text.h"

namespace trainyard::report {

bool ReplacedNumbers::look_at(std::string_view warning) {
  // "result.1.json: 'val.loss' was NaN: kept as null": the file, with its path or without, and what
  // wire/json_text.h says. "metric 'loss' was NaN: kept as null": LastMetrics::warning_of().
  constexpr std::string_view kMetric = "metric ";
  constexpr std::string_view kFile = "result.";
  constexpr std::string_view kBehindFile = ".json: ";
  constexpr std::string_view kWas = "' was ";
  constexpr std::string_view kEnd = ": kept as null";
  if (warning.starts_with(kMetric)) {
    warning.remove_prefix(kMetric.size());
  } else {
    const std::size_t behind = warning.find(kBehindFile);
    if (behind == std::string_view::npos) return false;
    const std::string_view path = warning.substr(0, behind);
    if (!path.substr(path.rfind('/') + 1).starts_with(kFile)) return false;
    warning.remove_prefix(behind + kBehindFile.size());
  }
  if (!warning.starts_with('\'') || !warning.ends_with(kEnd)) return false;
  warning.remove_suffix(kEnd.size());
  const std::size_t at = warning.rfind(kWas);
  if (at == std::string_view::npos) return false;
  const std::string number =
      fmt::format("{} is {}", warning.substr(1, at - 1), warning.substr(at + kWas.size()));
  if (numbers_.size() == kNumbersMax && !numbers_.contains(number)) return false;
  ++numbers_[number];
  ++count_;
  return true;
}

std::vector<std::string> ReplacedNumbers::lines() const {
  std::vector<std::string> lines;
  for (const auto& [number, count] : numbers_) {
    lines.push_back(fmt::format("{} in {} (shown as -)", plain(number), counted(count, "result")));
  }
  return lines;
}

}  // namespace trainyard::report

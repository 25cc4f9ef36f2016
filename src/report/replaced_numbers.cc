#include "report/replaced_numbers.h"

#include <algorithm>
#include <ranges>
#include <set>

#include <fmt/format.h>

#include "report/terminal_text.h"

namespace trainyard::report {
namespace {

/// "acc is NaN" and "loss is NaN", for "'acc' was NaN, 'loss' was NaN"; empty for another text.
std::set<std::string> numbers_in(std::string_view text) {
  constexpr std::string_view kBetween = ", '";
  constexpr std::string_view kWas = "' was ";
  std::set<std::string> numbers;
  if (!text.starts_with('\'')) return {};
  text.remove_prefix(1);
  for (const auto part : std::views::split(text, kBetween)) {
    const std::string_view number(part);
    const std::size_t at = number.rfind(kWas);
    if (at == std::string_view::npos) return {};
    numbers.insert(fmt::format("{} is {}", number.substr(0, at), number.substr(at + kWas.size())));
  }
  return numbers;
}

}  // namespace

bool ReplacedNumbers::look_at(std::string_view warning) {
  // "result.1.json: 'val.loss' was NaN: kept as null": the file, with its path or without, and
  // wire::replaced_text(). "metric 'loss' was NaN: kept as null": LastMetrics::warning_of().
  constexpr std::string_view kMetric = "metric ";
  constexpr std::string_view kFile = "result.";
  constexpr std::string_view kBehindFile = ".json: ";
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
  if (!warning.ends_with(kEnd)) return false;
  warning.remove_suffix(kEnd.size());
  const std::set<std::string> replaced = numbers_in(warning);
  const auto is_new = [this](const std::string& number) { return !numbers_.contains(number); };
  const auto added = static_cast<std::size_t>(std::ranges::count_if(replaced, is_new));
  if (replaced.empty() || numbers_.size() + added > kNumbersMax) return false;
  for (const std::string& number : replaced) ++numbers_[number];
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

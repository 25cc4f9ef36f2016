#include "text/metric_pattern.h"

#include <cstdint>
#include <expected>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <re2/re2.h>
#include <re2/stringpiece.h>

#include "base/utf8.h"

namespace trainyard::text {
namespace {

/// The maximum memory of a compiled pattern: each attempt has its own.
constexpr std::int64_t kPatternMemory = std::int64_t{1} << 20;

re2::StringPiece piece_of(std::string_view text) { return {text.data(), text.size()}; }

std::unexpected<Error> refused(std::string why) { return std::unexpected(Error{std::move(why)}); }

/// The mistake in RE2's own words, with a bracket in quotes.
std::unexpected<Error> refused_by(const re2::RE2& pattern, std::string_view text) {
  std::string why = valid_utf8(pattern.error());
  for (const std::string_view bracket : {"missing )", "missing ]"}) {
    if (why.starts_with(bracket))
      why.insert(bracket.size(), 1, '\'').insert(bracket.size() - 1, 1, '\'');
  }
  // The text has a group name in the form of other libraries.
  const bool other_names = text.contains("(?<") && !text.contains("(?<=") && !text.contains("(?<!");
  return refused(fmt::format("not a valid regular expression (RE2): {}{}", why,
                             other_names ? "; the name of a group is written (?P<loss>...)" : ""));
}

}  // namespace

MetricPattern::MetricPattern(std::unique_ptr<re2::RE2> pattern) : pattern_(std::move(pattern)) {}
MetricPattern::MetricPattern(MetricPattern&&) noexcept = default;
MetricPattern& MetricPattern::operator=(MetricPattern&&) noexcept = default;
MetricPattern::~MetricPattern() = default;

Result<MetricPattern> MetricPattern::compile(std::string_view pattern) {
  if (pattern.size() > kBytesMax) {
    return refused(fmt::format("the pattern is longer than {} bytes", kBytesMax));
  }
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kPatternMemory);
  auto compiled = std::make_unique<re2::RE2>(piece_of(pattern), options);
  if (!compiled->ok()) return refused_by(*compiled, pattern);
  const auto& names = compiled->CapturingGroupNames();
  if (names.empty()) {
    return refused(
        "the pattern has no named group for a number; write one as in 'loss[=:] "
        "?(?P<loss>[0-9.e+-]*[0-9])'");
  }
  if (names.size() > wire::LastMetrics::kNamesMax) {
    return refused(fmt::format("the pattern has {} named groups, but at most {} are allowed",
                               names.size(), wire::LastMetrics::kNamesMax));
  }
  for (const auto& [number, name] : names) {
    if (!wire::is_metric_name(name)) {
      return refused(fmt::format(
          "the group '{}' of the pattern has no name for a number: that is a letter or _, then "
          "letters, digits and _, {} at most",
          utf8_prefix(valid_utf8(name), wire::kMetricNameMax), wire::kMetricNameMax));
    }
  }
  return MetricPattern(std::move(compiled));
}

wire::MetricLine MetricPattern::find_in(std::string_view line) const {
  wire::MetricLine found;
  if (line.size() > wire::kMetricLineMax) return found;
  const auto& names = pattern_->CapturingGroupNames();
  std::vector<re2::StringPiece> groups(
      static_cast<std::size_t>(pattern_->NumberOfCapturingGroups()) + 1);
  std::size_t from = 0;
  for (std::size_t n = 0; n < wire::kMetricsOfLineMax && from <= line.size(); ++n) {
    const bool matches = pattern_->Match(piece_of(line), from, line.size(), re2::RE2::UNANCHORED,
                                         groups.data(), static_cast<int>(groups.size()));
    if (!matches) break;
    for (const auto& [number, name] : names) {
      const re2::StringPiece& group = groups.at(static_cast<std::size_t>(number));
      if (group.empty()) continue;
      const std::string_view text(group.data(), group.size());
      auto metric = wire::metric_of(name, text);
      if (metric) found.metrics.push_back(std::move(*metric));
      if (!metric && found.mistake.empty()) {
        const std::string mistake = valid_utf8(fmt::format("{}={}", name, text));
        found.mistake = utf8_prefix(mistake, wire::MetricLine::kMistakeBytesMax);
      }
      if (found.metrics.size() == wire::kMetricsOfLineMax) return found;
    }
    const re2::StringPiece& whole = groups.front();
    const auto end = static_cast<std::size_t>(whole.data() - line.data()) + whole.size();
    // A match of nothing is not found for ever.
    from = whole.empty() ? end + 1 : end;
  }
  return found;
}

}  // namespace trainyard::text

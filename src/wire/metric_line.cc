#include "wire/metric_line.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "wire/field_reader.h"
#include "wire/json_text.h"
#include "wire/result_text.h"
#include "wire/task.h"

namespace trainyard::wire {
namespace {

constexpr std::string_view kBetween = " \t,;";

bool begins_a_name(char byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_';
}

bool is_numeral(char byte) { return byte >= '0' && byte <= '9'; }

/// The number that all of a text is, as `Number` has it.
template <class Number>
std::pair<Number, std::errc> read_number(std::string_view text) {
  Number number{};
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status == std::errc::invalid_argument || end != text.data() + text.size()) {
    return {number, std::errc::invalid_argument};
  }
  return {number, status};
}

/// No name begins with a numeral: "loss=1,5" is one word, and no number, rather than 1.
std::size_t end_of_word(std::string_view line) {
  std::size_t end = line.find_first_of(kBetween);
  while (end < line.size() - 1 && line[end] == ',' && is_numeral(line[end + 1])) {
    end = line.find_first_of(kBetween, end + 1);
  }
  return std::min(end, line.size());
}

/// Names a number that JSON lacks, without the digits of a long one.
std::string lacked_number(double value, std::errc status, std::string_view written) {
  constexpr std::size_t kShownMax = 16;
  if (status != std::errc{}) {
    return std::string(written.size() > kShownMax ? "a number out of range" : written);
  }
  if (std::isnan(value)) return "NaN";
  return value < 0 ? "-Infinity" : "Infinity";
}

std::string shown_mistake(std::string_view text) {
  const std::string valid = valid_utf8(text);
  return std::string(utf8_prefix(valid, MetricLine::kMistakeBytesMax));
}

nlohmann::json value_of(const Metric& metric) {
  if (metric.whole) return *metric.whole;
  if (metric.number) return *metric.number;
  return nullptr;
}

}  // namespace

bool is_metric_name(std::string_view name) {
  if (name.empty() || name.size() > kMetricNameMax || !begins_a_name(name.front())) return false;
  return std::ranges::all_of(name, [](char byte) {
    return begins_a_name(byte) || is_numeral(byte) || std::string_view(".-/@").contains(byte);
  });
}

std::optional<Metric> metric_of(std::string_view name, std::string_view number) {
  if (!is_metric_name(name)) return std::nullopt;
  if (number.starts_with('+') && !number.starts_with("+-")) number.remove_prefix(1);
  const auto [value, status] = read_number<double>(number);
  if (status == std::errc::invalid_argument) return std::nullopt;
  Metric metric{.name = std::string(name)};
  // A number out of range is too large, or almost 0: it is not known which.
  if (status != std::errc{} || !std::isfinite(value)) {
    metric.lacked = lacked_number(value, status, number);
    return metric;
  }
  metric.number = value;
  const auto [whole, whole_status] = read_number<std::int64_t>(number);
  if (whole_status == std::errc{}) metric.whole = whole;
  return metric;
}

MetricLine read_metric_line(std::string_view line) {
  MetricLine read;
  if (line.size() > kMetricLineMax) return read;
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  if (!line.starts_with(kMetricBegins)) return read;
  const std::string_view whole = line;
  line.remove_prefix(kMetricBegins.size());
  if (!line.empty() && !kBetween.contains(line.front())) return read;
  while (read.metrics.size() < kMetricsOfLineMax) {
    line.remove_prefix(std::min(line.find_first_not_of(kBetween), line.size()));
    if (line.empty()) break;
    const std::string_view word = line.substr(0, end_of_word(line));
    line.remove_prefix(word.size());
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos) continue;
    auto metric = metric_of(word.substr(0, equals), word.substr(equals + 1));
    if (metric) {
      read.metrics.push_back(std::move(*metric));
    } else if (read.mistake.empty()) {
      // "acc = 0.5": the word alone does not show what is wrong.
      read.mistake = shown_mistake(word == "=" ? whole : word);
    }
  }
  if (read.metrics.empty() && read.mistake.empty()) read.mistake = shown_mistake(whole);
  return read;
}

void LastMetrics::add(const Metric& metric) {
  if (metric.name == kFraction) {
    if (!metric.number || *metric.number < 0 || *metric.number > 1) return;
    fraction_ = metric.number;
  } else if (const auto known = last_.find(metric.name); known != last_.end()) {
    known->second = metric;
  } else {
    if (last_.size() == kNamesMax) return;
    last_.emplace(metric.name, metric);
  }
  news_ = true;
}

std::string LastMetrics::values() const { return values_with({}); }

std::string LastMetrics::values_with(std::string_view said) const {
  nlohmann::json values = nlohmann::json::object();
  for (const auto& [name, metric] : last_) values[name] = value_of(metric);
  if (!said.empty()) {
    const auto over = parse_fields(said);
    if (over) values.update(*over);
  }
  if (values.empty()) return {};
  std::string text = fields_text(values);
  return text.size() <= kValuesBytesMax ? text : std::string(said);
}

std::string LastMetrics::added_to(std::string_view result) const {
  const auto object = nlohmann::json::parse(result, nullptr, /*allow_exceptions=*/false);
  nlohmann::json missing = nlohmann::json::object();
  for (const auto& [name, metric] : last_) {
    if (object.is_object() && !object.contains(name)) missing[name] = value_of(metric);
  }
  std::string text(result);
  if (missing.empty()) return text;
  // As text, so that the keys of the result keep their order.
  const std::string added = fields_text(missing);
  if (object.empty()) return added;
  text.back() = ',';
  text += added.substr(1);
  return text.size() <= kResultBytesMax ? text : std::string(result);
}

std::string LastMetrics::warning_of(std::string_view result) const {
  const auto object = nlohmann::json::parse(result, nullptr, /*allow_exceptions=*/false);
  std::vector<std::string> named;
  std::size_t count = 0;
  for (const auto& [name, metric] : last_) {
    const auto kept = object.find(name);
    if (metric.lacked.empty() || kept == object.end() || !kept->is_null()) continue;
    if (count++ < kReplacedNamedMax) {
      named.push_back(fmt::format("'{}' was {}", name, metric.lacked));
    }
  }
  return count > 0 ? "metric " + replaced_text(named, count) : std::string();
}

}  // namespace trainyard::wire

// Numbers that a program prints of itself: what a line says that is written for us, as in
//
//   ::metric loss=0.31 step=40
//
// and what counts as a metric at all, whoever found it. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trainyard::wire {

/// How a line with metrics begins.
constexpr std::string_view kMetricBegins = "::metric";

/// A line that is longer says nothing.
constexpr std::size_t kMetricLineMax = 4'096;
/// A name that is longer is none.
constexpr std::size_t kMetricNameMax = 64;
/// Number of metrics that are taken of one line, the first ones.
constexpr std::size_t kMetricsOfLineMax = 32;

struct Metric {
  std::string name;
  /// Nothing: it is NaN, an infinity, or more than a double can be, for which JSON has no word.
  std::optional<double> number;
  /// It was written without a point, and is shown so: "step=40".
  std::optional<std::int64_t> whole;
  /// The number that JSON lacks, as Python's json module writes it: "NaN"; empty if there is one.
  std::string lacked = {};

  friend bool operator==(const Metric&, const Metric&) = default;
};

/// Whether it is a name: a letter or `_`, then letters, digits and `_ . - / @`.
bool is_metric_name(std::string_view name);

/// Nothing where the name is none, or the text is no number.
std::optional<Metric> metric_of(std::string_view name, std::string_view number);

/// What a line that begins with "::metric" says.
struct MetricLine {
  std::vector<Metric> metrics;
  /// The first word with a `=` that is no <name>=<number>, such as "acc=87%". The whole line, if it
  /// has neither such a word nor a metric. At most kMistakeBytesMax bytes of valid UTF-8; empty:
  /// there is no mistake.
  std::string mistake = {};

  static constexpr std::size_t kMistakeBytesMax = 80;
};

/// Empty for any other line. Blanks or commas stand between the words; words without a `=` are
/// passed over next to metrics.
MetricLine read_metric_line(std::string_view line);

/// The last value of each metric of an attempt, of so many names at most: the first ones that came
/// up.
class LastMetrics {
 public:
  static constexpr std::size_t kNamesMax = 32;
  /// The metric of this name, from 0 to 1, is no value: it is how far the attempt is.
  static constexpr std::string_view kFraction = "fraction";

  void add(const Metric& metric);

  [[nodiscard]] std::optional<double> fraction() const { return fraction_; }
  /// As a compact JSON object, at most as long as the values of wire::Progress; empty when there is
  /// none.
  [[nodiscard]] std::string values() const;
  /// The same with what was said beside it, an object as text or nothing: that goes over it.
  [[nodiscard]] std::string values_with(std::string_view said) const;
  /// A result, a compact JSON object, with the metrics whose names it does not have at its end. The
  /// result alone if both together are longer than kResultBytesMax.
  [[nodiscard]] std::string added_to(std::string_view result) const;
  /// For people: "metric 'acc' was NaN, 'loss' was NaN: kept as null", about the numbers that are
  /// null in this result, a JSON object as text; empty: none is.
  [[nodiscard]] std::string warning_of(std::string_view result) const;
  /// Returns whether metrics have come since the last call.
  [[nodiscard]] bool take_news() { return std::exchange(news_, false); }

 private:
  std::map<std::string, Metric, std::less<>> last_;  ///< By name.
  std::optional<double> fraction_;
  bool news_ = false;
};

}  // namespace trainyard::wire

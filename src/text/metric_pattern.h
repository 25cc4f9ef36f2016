// A pattern by which people find numbers in what a program prints of itself (`metrics` of a job
// file): the words of RE2, whose time grows with the length of a line and with nothing else.
//
//   loss[=:] ?(?P<loss>[0-9.e+-]*[0-9])
//
// Immutable; any thread.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "base/result.h"
#include "wire/metric_line.h"

namespace re2 {
class RE2;
}

namespace trainyard::text {

class MetricPattern {
 public:
  static constexpr std::size_t kBytesMax = 1'000;

  /// An error says the correct form: each number to find is in a group with a name.
  static Result<MetricPattern> compile(std::string_view pattern);
  MetricPattern(MetricPattern&&) noexcept;
  MetricPattern& operator=(MetricPattern&&) noexcept;
  ~MetricPattern();

  /// The values of the named groups in a line, in its order, for each match of the pattern; at most
  /// wire::kMetricsOfLineMax of them. Values that are not numbers are skipped: the first of them
  /// is the mistake, as in "acc=0.9.", unless it is empty.
  [[nodiscard]] wire::MetricLine find_in(std::string_view line) const;

 private:
  explicit MetricPattern(std::unique_ptr<re2::RE2> pattern);
  std::unique_ptr<re2::RE2> pattern_;
};

}  // namespace trainyard::text

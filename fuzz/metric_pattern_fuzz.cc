// A pattern that somebody writes, up to the first line feed, and what a task prints then.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "text/metric_pattern.h"
#include "wire/metric_line.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using trainyard::check;
  namespace wire = trainyard::wire;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t end = text.find('\n');
  const auto pattern = trainyard::text::MetricPattern::compile(text.substr(0, end));
  if (!pattern) {
    check(!pattern.error().message.empty(), "a refusal says why");
    return 0;
  }
  const std::string_view line = end == std::string_view::npos ? text : text.substr(end + 1);
  const std::vector<wire::Metric> found = pattern->find_in(line).metrics;
  check(found == pattern->find_in(line).metrics, "the same line, the same metrics");
  check(found.size() <= wire::kMetricsOfLineMax, "of a line no more than its bound");
  for (const wire::Metric& metric : found) {
    check(wire::is_metric_name(metric.name), "a metric has a name");
  }
  return 0;
}

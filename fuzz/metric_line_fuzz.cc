// Whatever a task prints behind "::metric".
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/check.h"
#include "wire/metric_line.h"
#include "wire/task.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using trainyard::check;
  namespace wire = trainyard::wire;
  const std::string text(reinterpret_cast<const char*>(data), size);
  wire::LastMetrics last;
  for (const std::string& line : {text, "::metric " + text}) {
    const std::vector<wire::Metric> metrics = wire::read_metric_line(line).metrics;
    check(metrics == wire::read_metric_line(line).metrics, "the same line, the same metrics");
    check(metrics.size() <= wire::kMetricsOfLineMax, "of a line no more than its bound");
    for (const wire::Metric& metric : metrics) {
      check(wire::is_metric_name(metric.name), "a metric has a name");
      check(!metric.number || std::isfinite(*metric.number), "JSON has its number");
      check(!metric.whole || metric.number, "what is whole is a number");
      last.add(metric);
    }
  }
  const std::string values = last.values();
  check(values.size() <= wire::kValuesBytesMax, "progress can say them");
  const auto report = wire::read_report(
      wire::to_fields(wire::TaskReport{wire::Progress{.fraction = {}, .values = values}}));
  check(report && std::get<wire::Progress>(*report).values == values, "and is read as it was said");
  return 0;
}

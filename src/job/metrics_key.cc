#include "job/metrics_key.h"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "text/metric_pattern.h"
#include "text/placeholder.h"

namespace trainyard::job {

std::optional<Text> read_metrics(const text::Complainer& to, const text::YamlNode& node) {
  std::optional<std::string> pattern = text::read_single(to, node, "metrics");
  if (!pattern) return std::nullopt;
  const auto compiled = text::MetricPattern::compile(*pattern);
  if (compiled) {
    return Text{.text = text::Template::plain(std::move(*pattern)), .place = node.place};
  }
  to.complain(node, fmt::format("metrics: {}", compiled.error().message));
  return std::nullopt;
}

}  // namespace trainyard::job

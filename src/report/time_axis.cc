#include "report/time_axis.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include <fmt/format.h>

#include "base/duration_text.h"

namespace trainyard::report {
namespace {

constexpr std::int64_t kTicksMax = 8;
constexpr Duration kSeconds{2'000};  ///< From so long on they are not divided.

/// A step between marks that a person counts in: 1, 2, 5, 10, 15, 30 seconds, minutes, hours, days.
Duration step_for(Duration span) {
  constexpr std::array<std::int64_t, 7> kMilliseconds{5, 10, 20, 50, 100, 200, 500};
  constexpr std::array<std::int64_t, 24> kSteps{
      1,      2,      5,       10,      15,      30,        60,        120,
      300,    600,    900,     1800,    3600,    7200,      10'800,    21'600,
      43'200, 86'400, 172'800, 432'000, 864'000, 1'728'000, 4'320'000, 8'640'000};
  for (const std::int64_t step : kMilliseconds) {
    if (span < kSeconds && span.count() / step <= kTicksMax) return Duration{step};
  }
  for (const std::int64_t seconds : kSteps) {
    if (span.count() / (seconds * 1000) <= kTicksMax) return Duration{seconds * 1000};
  }
  return Duration{std::max<std::int64_t>(1, span.count() / kTicksMax)};
}

}  // namespace

std::string tick_text(Duration at) {
  const std::int64_t seconds = at.count() / 1000;
  if (seconds >= 60) return to_text(at);
  if (at < kSeconds && at.count() % 1000 != 0) {
    return fmt::format("{:g} s", static_cast<double>(at.count()) / 1000);
  }
  return fmt::format("{} s", seconds);
}

std::string time_axis_svg(const TimeAxis& axis, const std::function<double(Duration)>& x_of) {
  std::string text;
  const Duration step = step_for(axis.span);
  for (Duration at{0}; at <= axis.span; at += step) {
    const double x = x_of(at);
    text += fmt::format(R"(<line class="grid" x1="{0:.1f}" x2="{0:.1f}" y1="0" y2="{1:.1f}"/>)", x,
                        axis.height);
    const bool first = at == Duration{0};
    const bool last = x > axis.right - 30;
    text +=
        fmt::format("<text class=\"tick\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n",
                    x, axis.height + 16,
                    first  ? "start"
                    : last ? "end"
                           : "middle",
                    tick_text(at));
  }
  return text;
}

}  // namespace trainyard::report

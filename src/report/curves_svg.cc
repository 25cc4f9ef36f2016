#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include <fmt/format.h>

#include "report/curves.h"
#include "report/html_text.h"

namespace trainyard::report {
namespace {

constexpr double kCurveWidth = 460;
constexpr double kHeight = 190;
constexpr double kCurveLeft = 56;
constexpr double kCurveRight = 12;
constexpr double kTop = 26;
constexpr double kBottom = 24;

struct ValueRange {
  double low = std::numeric_limits<double>::max();
  double high = std::numeric_limits<double>::lowest();

  void take(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  /// From 0 to 1; the middle where all is one.
  [[nodiscard]] double place(double value) const {
    return high > low ? (value - low) / (high - low) : 0.5;
  }
};

/// At most eight letters, the room next to the axis.
std::string short_number(double value) {
  const double size = std::abs(value);
  const bool small = size > 0 && size < 0.001;
  return small ? fmt::format("{:.1e}", value) : fmt::format("{:.3g}", value);
}

}  // namespace

std::string curve_svg(const Curve& curve) {
  ValueRange x;
  ValueRange y;
  for (const CurveLine& line : curve.lines) {
    for (const CurveLine::Point& point : line.points) {
      x.take(point.x);
      y.take(point.y);
    }
  }
  const double width = kCurveWidth - kCurveLeft - kCurveRight;
  const double height = kHeight - kTop - kBottom;
  std::string svg =
      fmt::format(R"(<svg class="curve" viewBox="0 0 {0} {1}" role="img" aria-label="{2}">)"
                  R"(<text class="key" x="{3}" y="16">{2}</text>)"
                  R"(<path class="frame" d="M{3} {4}V{5}H{6}"/>)",
                  kCurveWidth, kHeight, html(curve.key), kCurveLeft, kTop, kTop + height,
                  kCurveWidth - kCurveRight);
  const auto text = [&svg](double at_x, double at_y, const char* anchor, const std::string& words) {
    svg += fmt::format(R"(<text class="tick" x="{}" y="{}" text-anchor="{}">{}</text>)", at_x, at_y,
                       anchor, html(words));
  };
  text(kCurveLeft, kHeight - 8, "start", curve.from);
  text(kCurveWidth - kCurveRight, kHeight - 8, "end", curve.to);
  text(kCurveLeft - 6, kTop + 8, "end", short_number(y.high));
  if (y.high > y.low) text(kCurveLeft - 6, kTop + height, "end", short_number(y.low));
  for (const CurveLine& line : curve.lines) {
    std::string points;
    std::string marks;
    for (const CurveLine::Point& point : line.points) {
      const double at_x = kCurveLeft + (width * x.place(point.x));
      const double at_y = kTop + (height * (1 - y.place(point.y)));
      points += fmt::format("{:.1f},{:.1f} ", at_x, at_y);
      if (point.name.empty()) continue;
      marks += fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="3"><title>{}</title></circle>)",
                           at_x, at_y, html(point.name));
    }
    svg += fmt::format("<polyline points=\"{}\"><title>{}</title></polyline>{}", points,
                       html(line.id), marks);
  }
  return svg + "</svg>\n";
}

}  // namespace trainyard::report

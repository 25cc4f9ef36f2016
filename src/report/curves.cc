#include "report/curves.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "report/html_page.h"
#include "report/result_fields.h"

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

bool Curves::look_at(const journal::ProgressRow& row, const std::string& id) {
  if (task_ != row.task) {
    if (std::ssize(tasks_) == kTasksMax) return false;
    task_ = row.task;
    tasks_.push_back({.id = id, .first = row.at});
  }
  OfTask& task = tasks_.back();
  for (const Field& field : read_fields(row.values)) {
    if (!field.is_number()) continue;
    auto key = std::ranges::find(keys_, field.key);
    if (key == keys_.end()) {
      if (std::ssize(keys_) == kKeysMax) continue;
      key = keys_.insert(keys_.end(), field.key);
    }
    task.said.push_back({.key = static_cast<std::size_t>(key - keys_.begin()),
                         .fraction = row.fraction,
                         .since_first = row.at - task.first,
                         .value = field.number});
  }
  return true;
}

std::vector<Curve> Curves::take() const {
  std::vector<Curve> curves;
  for (std::size_t key = 0; key < keys_.size(); ++key) {
    Curve curve{.key = keys_[key]};
    bool over_time = false;
    for (const OfTask& task : tasks_) {
      over_time = over_time || std::ranges::any_of(task.said, [key](const Said& said) {
                    return said.key == key && !said.fraction;
                  });
    }
    bool drawn = false;
    double from = std::numeric_limits<double>::max();
    double to = 0;
    for (const OfTask& task : tasks_) {
      CurveLine line{.id = task.id};
      for (const Said& said : task.said) {
        if (said.key != key) continue;
        const double seconds = static_cast<double>(said.since_first.count()) / 1000;
        const double x = over_time ? seconds : said.fraction.value_or(0);
        line.points.push_back({.x = x, .y = said.value});
        from = std::min(from, x);
        to = std::max(to, x);
      }
      drawn = drawn || line.points.size() > 1;
      if (!line.points.empty()) curve.lines.push_back(std::move(line));
    }
    const auto end = [over_time](double x) {
      return over_time ? fmt::format("{:.0f} s", x) : fmt::format("{:.0f} %", 100 * x);
    };
    curve.from = end(from);
    curve.to = end(to);
    if (drawn) curves.push_back(std::move(curve));
  }
  return curves;
}

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

std::string curves_section(std::string_view title, std::span<const Curve> curves) {
  if (curves.empty()) return {};
  std::string text = section_top(title) + "<div class=\"curves\">\n";
  for (const Curve& curve : curves) text += curve_svg(curve);
  return text + "</div>\n</section>\n";
}

}  // namespace trainyard::report

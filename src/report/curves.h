// The progress that tasks reported, as curves: one chart for each value, one line for each task.
// Pure: rows in, points out.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "journal/reader.h"
#include "model/ids.h"

namespace trainyard::report {

struct CurveLine {
  std::string id;  ///< The id of its task.
  struct Point {
    double x = 0;  ///< The progress from 0 to 1; or seconds, where some tasks did not report it.
    double y = 0;
    std::string name;  ///< Shown when one points at it; empty: it is not marked.
    friend bool operator==(const Point&, const Point&) = default;
  };
  std::vector<Point> points;
};

struct Curve {
  std::string key;  ///< "loss"
  std::vector<CurveLine> lines;
  std::string from;  ///< The labels of the ends of the x axis.
  std::string to;
};

class Curves {
 public:
  static constexpr int kKeysMax = 12;
  static constexpr int kTasksMax = 30;

  /// The rows of a task come one after the other, in order of time. False: it wants no more.
  bool look_at(const journal::ProgressRow& row, const std::string& id);

  /// The curves that have a line of at least two points.
  [[nodiscard]] std::vector<Curve> take() const;

 private:
  struct Said {
    std::size_t key = 0;
    std::optional<double> fraction;
    Duration since_first{0};
    double value = 0;
  };
  struct OfTask {
    std::string id;
    Instant first;
    std::vector<Said> said;
  };
  std::optional<model::TaskIndex> task_;
  std::vector<std::string> keys_;
  std::vector<OfTask> tasks_;
};

/// A chart as SVG, with its title and the ends of both axes. The id of a task shows when one points
/// at its line.
std::string curve_svg(const Curve& curve);

/// Charts as a section of a page; empty for none.
std::string curves_section(std::string_view title, std::span<const Curve> curves);

}  // namespace trainyard::report

// The axis of a picture whose time goes to the right. Pure.
#pragma once

#include <functional>
#include <string>

#include "base/time.h"

namespace trainyard::report {

/// "12 s", "1.5 s", "3m20s"
std::string tick_text(Duration at);

struct TimeAxis {
  Duration span{0};
  double height = 0;  ///< Of what its lines go through.
  double right = 0;   ///< A mark that is nearer to it ends there.
};
/// Lines with their times below them, as SVG; a person counts in their steps. `x_of`: where a
/// moment lies.
std::string time_axis_svg(const TimeAxis& axis, const std::function<double(Duration)>& x_of);

}  // namespace trainyard::report

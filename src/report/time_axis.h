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
  double height = 0;  ///< The height of the picture that its lines cross.
  double right = 0;   ///< A mark that is nearer to it ends there.
};
/// Lines with their times below them, as SVG, in steps that people count in. `x_of`: the position
/// of a time.
std::string time_axis_svg(const TimeAxis& axis, const std::function<double(Duration)>& x_of);

}  // namespace trainyard::report

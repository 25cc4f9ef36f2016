// A chart of what tasks said of their progress, as SVG. Pure.
#pragma once

#include <string>

#include "report/curves.h"

namespace trainyard::report {

/// With its title and the ends of both axes. The id of a task shows when one points at its line.
std::string curve_svg(const Curve& curve);

}  // namespace trainyard::report

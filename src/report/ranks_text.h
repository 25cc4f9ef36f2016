// A task of several ranks in a dry run. Pure.
#pragma once

#include <string>

#include "model/plan.h"

namespace trainyard::report {

/// "4 processes with 1 GPU each"
std::string ranks_text(const model::Shape& shape);

}  // namespace trainyard::report

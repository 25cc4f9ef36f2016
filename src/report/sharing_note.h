// The note about the assumed cost of sharing GPUs before it has been measured.
#pragma once

#include <string>

#include "model/plan.h"
#include "model/resources.h"

namespace trainyard::report {

/// One line if tasks may share a GPU at a cost that is neither configured nor measured in the plan;
/// else empty.
std::string sharing_note(const model::Plan& plan, const model::Capacity& capacity);

}  // namespace trainyard::report

// What a run takes sharing GPUs to cost before anybody has measured it.
#pragma once

#include <string>
#include <vector>

#include "model/plan.h"
#include "model/resources.h"

namespace trainyard::report {

/// One line where tasks may share a GPU and nobody wrote what that costs, and no earlier run has
/// measured it (`measured` by group, 0 or no entry: none has); else empty.
std::string sharing_note(const model::Plan& plan, const model::Capacity& capacity,
                         const std::vector<int>& measured = {});

}  // namespace trainyard::report

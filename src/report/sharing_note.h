// What a run takes sharing GPUs to cost before anybody has measured it.
#pragma once

#include <string>

#include "model/plan.h"
#include "model/resources.h"

namespace trainyard::report {

/// One line where tasks may share a GPU and nobody wrote what that costs, and the plan knows of no
/// measure of it; else empty.
std::string sharing_note(const model::Plan& plan, const model::Capacity& capacity);

}  // namespace trainyard::report

// The part of a machine that tasks may use, as text for users. Pure.
#pragma once

#include <string>

#include "model/plan.h"
#include "model/resources.h"

namespace trainyard::settings {

/// One line: its CPUs and its memory.
std::string machine_text(const model::Capacity& machine, const model::Policy& policy);

/// A line for each of its GPUs; empty where there are none.
std::string gpus_text(const model::Capacity& machine, const model::Policy& policy);

}  // namespace trainyard::settings

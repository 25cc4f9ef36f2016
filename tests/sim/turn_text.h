// A turn in words, for the person who looks for what went wrong in a simulated run.
#pragma once

#include <string>

#include "model/turn.h"

namespace trainyard::sim {

/// One line for each event, and an indented one for each decision.
std::string to_text(const model::Turn& turn);

}  // namespace trainyard::sim

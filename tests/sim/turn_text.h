// A turn in words, for the person who looks for what went wrong in a simulated run.
#pragma once

#include <string>

#include "model/turn.h"

namespace trainyard::sim {

/// One line for each event, and one, further in, for each thing that was decided.
std::string to_text(const model::Turn& turn);

}  // namespace trainyard::sim

// The correction of a decision when a part of it is refused: nobody is told of starts that are not
// made.
#pragma once

#include <span>

#include "model/command.h"
#include "model/ids.h"

namespace trainyard::run {

/// Takes the starts of these attempts out of a decision.
void forget_starts(model::Decision& decision, std::span<const model::AttemptKey> refused);

}  // namespace trainyard::run

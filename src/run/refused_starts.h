// What becomes of a decision when something of it is refused: nobody is told of what was not to be.
#pragma once

#include <span>

#include "model/command.h"
#include "model/ids.h"

namespace trainyard::run {

/// Takes out of a decision what it starts, of these attempts.
void forget_starts(model::Decision& decision, std::span<const model::AttemptKey> refused);

}  // namespace trainyard::run

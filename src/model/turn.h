// One turn of the loop, as it is written down: what happened, and what was decided about it.
#pragma once

#include <vector>

#include "model/command.h"
#include "model/event.h"

namespace trainyard::model {

struct Turn {
  std::vector<Event> events;
  std::vector<Decision> decisions;  ///< One for each event, in the same order.
};

}  // namespace trainyard::model

// Decisions of the scheduler as text, so that a run that is played again can be compared with what
// was decided then.
//
//   {"commands":[{"stop_attempt":{"key":{"task":7,"attempt":2},"kill":true}}]}
//
// In the form of events (wire/events.h). It is not read again: what people read of a decision is in
// the journal's own words. No state; any thread.
#pragma once

#include <string>

#include "model/command.h"

namespace trainyard::wire {

/// Two decisions have the same text if and only if they are the same, but for numbers that are NaN.
/// "{}" where nothing was decided.
std::string to_text(const model::Decision& decision);

}  // namespace trainyard::wire

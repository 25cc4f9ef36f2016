// Decisions of the scheduler as text, so that a replayed run can be compared with the decisions of
// the first time.
//
//   {"commands":[{"stop_attempt":{"key":{"task":7,"attempt":2},"kill":true}}]}
//
// In the form of events (wire/events.h). Nothing reads the text again: the journal describes
// decisions in its own words for users. No state; any thread.
#pragma once

#include <string>

#include "model/command.h"

namespace trainyard::wire {

/// Two decisions have the same text if and only if they are the same, but for numbers that are NaN.
/// "{}" where nothing was decided.
std::string to_text(const model::Decision& decision);

}  // namespace trainyard::wire

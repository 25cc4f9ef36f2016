// Commands of the scheduler as text, and read again: for agents on other machines,
// and for the journal. All of a command survives it.
//
//   {"stop_attempt":{"key":{"task":7,"attempt":2},"kill":true}}
//
// In the form of events (wire/events.h); a command has no time. No state; any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "model/command.h"

namespace trainyard::wire {

std::string to_text(const model::Command& command);

/// From any text, as event_from_text(). Whether the run has the tasks and the GPUs that a command
/// speaks of is not known here.
Result<model::Command> command_from_text(std::string_view text);

}  // namespace trainyard::wire

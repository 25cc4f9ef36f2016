// How the scheduler may use machines as text, and read again: a run that is played again is played
// by the policy that it had.
//
//   {"memory_remain":4000000000,"stop_grace":5000}
//
// In the form of events (wire/events.h). No state; any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "model/plan.h"

namespace trainyard::wire {

std::string to_text(const model::Policy& policy);

/// From any text, as event_from_text().
Result<model::Policy> policy_from_text(std::string_view text);

}  // namespace trainyard::wire

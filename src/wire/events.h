// The text form of a scheduler's policy, events and decisions: a run records them, a replay reads
// the policy and the events and compares the decisions. Agents on other machines report events in
// this form, too. A policy or an event is the same after it has been written and read.
//
//   {"at":61250,"sampled":{"memory_available":64000000000,"tasks":[{"key":{"task":7},"memory":9}]}}
//   {"commands":[{"stop_attempt":{"key":{"task":7,"attempt":2},"kill":true}}]}
//   {"memory_remain":4000000000,"stop_grace":5000}
//
// Each is one JSON object on one line; an event has its time, and its members under its name.
// Members have the names that they have in model/; memory is in bytes, times are in milliseconds,
// CPUs in thousandths. Members with their default value are left out, also the time at the very
// start of a run. Text that is not UTF-8 is an object with its bytes, {"hex":"ff61"}; numbers that
// JSON does not know are "nan", "inf" and "-inf". A value without members is {}.
//
// No state; any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "model/command.h"
#include "model/event.h"
#include "model/plan.h"

namespace trainyard::wire {

std::string to_text(const model::Event& event);

/// Reads an event from untrusted text. Skips unknown members; missing members have their defaults.
/// An error names the place and the problem: "event: sampled.tasks[3].memory: must be a whole
/// number from ...". Checks the plan of a batch (wire/plan_check.h), but not that the run has the
/// tasks and the machines that the event names. Uses up to some hundred times the bytes of the
/// text, which the caller bounds.
Result<model::Event> event_from_text(std::string_view text);

/// Equal decisions have the same text, and different ones have different texts; a NaN is equal to
/// itself. "{}" for an empty decision.
std::string to_text(const model::Decision& decision);

std::string to_text(const model::Policy& policy);

/// Reads a policy from untrusted text, as event_from_text().
Result<model::Policy> policy_from_text(std::string_view text);

}  // namespace trainyard::wire

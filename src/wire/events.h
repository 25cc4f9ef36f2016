// What a run records of its scheduler as text, so that it can be played again: the policy, events,
// and the decisions, which are compared. Agents on other machines report events in this form, too.
// Nothing of a policy or an event is lost when it is read again.
//
//   {"at":61250,"sampled":{"memory_available":64000000000,"tasks":[{"key":{"task":7},"memory":9}]}}
//   {"commands":[{"stop_attempt":{"key":{"task":7,"attempt":2},"kill":true}}]}
//   {"memory_remain":4000000000,"stop_grace":5000}
//
// One JSON object on one line; of an event: when, and what, under its name. Members have the names
// that they have in model/; memory is in bytes, times are in milliseconds, CPUs in thousandths.
// Members with their default value are left out, also the time at the very start of a run. Text
// that is not UTF-8 is an object with its bytes, {"hex":"ff61"}; numbers that JSON does not know
// are "nan", "inf" and "-inf". A value without members is {}.
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

/// From any text, whoever wrote it. Members that nobody knows are skipped, and those that are
/// missing are as they are by default. An error names what is wrong: "event:
/// sampled.tasks[3].memory: must be a whole number from ...". The plan of a batch is there, and
/// whole (wire/plan_check.h); whether the run has the tasks and the machines that an event speaks
/// of is not known here. Costs no more than some hundred times the bytes of the text, which the
/// caller bounds.
Result<model::Event> event_from_text(std::string_view text);

/// Two decisions have the same text if and only if they are the same, but for numbers that are NaN.
/// "{}" where nothing was decided.
std::string to_text(const model::Decision& decision);

std::string to_text(const model::Policy& policy);

/// From any text, as event_from_text().
Result<model::Policy> policy_from_text(std::string_view text);

}  // namespace trainyard::wire

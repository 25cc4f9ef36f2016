// Whether a plan that somebody else wrote is one: all that it names is there, and in the order in
// which the scheduler counts on it. Whether the earlier batches are there that it needs only that
// can say. No state; any thread.
#pragma once

#include <optional>

#include "base/result.h"
#include "model/plan.h"

namespace trainyard::wire {

/// The first fault, with the place that it is in: "tasks[3].shape: there is no shape 7, only 2".
std::optional<Error> fault_of(const model::Plan& plan);

}  // namespace trainyard::wire

// Attempts on agents of an execution whose yard has died, when the run is resumed.
//
// Belongs to one thread.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "journal/options.h"
#include "model/ids.h"
#include "run/remote_machines.h"

namespace trainyard::run {

/// The attempts that may go on, for the journal. Two-phase ones may not: only the yard knew the
/// messages to them, and their reservations. `machines` may be null: none.
std::vector<journal::FoundAttempt> found_attempts(const RemoteMachines* machines);

/// All other attempts are ended: waits until they are.
Result<void> keep_attempts(RemoteMachines* machines, const std::set<model::AttemptKey>& go_on);

/// For users, before that: "2 tasks kept running without trainyard, and continue", and the outcomes
/// of the others. `machines` may be null: nothing.
std::vector<std::string> lines_about_found(const RemoteMachines* machines,
                                           const std::set<model::AttemptKey>& go_on);

}  // namespace trainyard::run

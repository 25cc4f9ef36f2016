// What agents have of an execution whose yard has died, where the run goes on.
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

/// Those that may go on, for the journal. Not those of two phases: what was said to them, and what
/// they hold, only the yard knew. `machines` may be null: none.
std::vector<journal::FoundAttempt> found_attempts(const RemoteMachines* machines);

/// All others are ended: waits until they are.
Result<void> keep_attempts(RemoteMachines* machines, const std::set<model::AttemptKey>& go_on);

/// For people, before that: "2 tasks kept running without trainyard, and continue", and what became
/// of the others. `machines` may be null: nothing.
std::vector<std::string> lines_about_found(const RemoteMachines* machines,
                                           const std::set<model::AttemptKey>& go_on);

}  // namespace trainyard::run

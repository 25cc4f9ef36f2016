// The check that a machine has what a run needs there: its directory, the programs of its tasks,
// room on the disk. Reported beforehand, so that users need not learn it from tasks that fail.
//
// Starts shells and Pythons, which end before it does, and nothing of the tasks. Blocks the calling
// thread: an agent has it done by another process (run/agent_server.h).
#pragma once

#include <string>
#include <vector>

#include "base/time.h"
#include "wire/agent.h"

namespace trainyard::run {

/// Time limit for a Python to report its modules.
constexpr Duration kImportsMax{10'000};
/// Time limit for a whole look.
constexpr Duration kLookMax{30'000};

/// Looks for one program here, and asks it for its modules, of which `sought` may name none.
wire::FoundProgram look_for_program(const wire::SoughtProgram& sought);

/// The files that the name of a program may mean for its task: seen from its directory, in order.
/// Looks at none of them.
std::vector<std::string> places_of(const wire::SoughtProgram& sought);

/// Looks here, on the machine that it is called on.
wire::AgentSeen look_at_machine(const wire::AgentLook& look);

}  // namespace trainyard::run

// trainyard itself, brought to hosts where it is not installed: into the cache of their user, under
// its version and what it is made of, so that what is there is never another one. It needs a shell
// there, and nothing else.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/host_programs.h"
#include "settings/configuration.h"

namespace trainyard::cli {

/// What starts trainyard on another host, for the shell there: as the configuration says, or that
/// which is brought. An error where it cannot be known what we are.
Result<std::string> agent_program(const settings::Configuration& configuration);

/// Brings it to each host that the configuration names, where it says so and where it is not yet.
Result<std::vector<NotBrought>> copy_agents(const settings::Configuration& configuration);

}  // namespace trainyard::cli

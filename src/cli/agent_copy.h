// Copies trainyard itself to hosts where it is not installed: into the cache of the user there,
// under its version and a fingerprint of its file, so that a copy never stands for another program.
// Needs only a shell there.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/host_programs.h"
#include "settings/configuration.h"

namespace trainyard::cli {

/// The command that starts trainyard on another host, for the shell there: as configured, or the
/// copy that is brought there. An error if this program cannot be found or read.
Result<std::string> agent_program(const settings::Configuration& configuration);

/// Copies it to each host that the configuration names, where it is configured to be copied and is
/// missing.
Result<std::vector<NotBrought>> copy_agents(const settings::Configuration& configuration);

}  // namespace trainyard::cli

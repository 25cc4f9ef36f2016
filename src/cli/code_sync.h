// The code of a job, brought to machines that have a directory of their own for it: by rsync,
// before their agents are started. Nothing is deleted there.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/host_programs.h"
#include "cli/run_machines.h"
#include "settings/configuration.h"
#include "settings/machine_entries.h"

namespace trainyard::cli {

/// The word for the code in messages about copying it.
inline constexpr std::string_view kCode = "the code";

/// Whether any machine has its own directory.
bool syncs(const settings::Configuration& configuration);

/// The command that brings what an entry says of the directory. Runs are left out.
std::vector<std::string> words_that_sync(const settings::MachineEntry& machine,
                                         const JobGround& ground);

/// The command that finds out whether files could be brought, where nothing is.
std::vector<std::string> words_that_look(const settings::MachineEntry& machine,
                                         const JobGround& ground);

/// To all of them.
std::vector<NotBrought> sync_code(const JobGround& ground);

}  // namespace trainyard::cli

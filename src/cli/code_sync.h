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

/// To all of them.
std::vector<NotBrought> sync_code(const JobGround& ground);

}  // namespace trainyard::cli

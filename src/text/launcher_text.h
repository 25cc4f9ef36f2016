// A launcher as people write it: a name, or a list with {command} in it.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "trainyard/launcher.h"

namespace trainyard::text {

/// Reads "mpirun", or a JSON list of texts: ["srun", "-n", "{ranks}", "{command}"].
Result<Launcher> parse_launcher(std::string_view text);

}  // namespace trainyard::text

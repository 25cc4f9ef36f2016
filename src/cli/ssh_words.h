// The programs that lead to another machine: ssh, as its user has set it, and rsync by it.
#pragma once

#include <string>
#include <vector>

#include "settings/configuration.h"

namespace trainyard::cli {

/// Without the host: a password cannot be asked for.
std::vector<std::string> words_of_ssh(const settings::Configuration& configuration);

/// Without the paths to copy. It keeps times and links, takes files of the same size and time, to
/// the nanosecond, as equal, and gives up if nothing moves for a minute.
std::vector<std::string> words_of_rsync(const settings::Configuration& configuration);

}  // namespace trainyard::cli

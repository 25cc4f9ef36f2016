// The programs that lead to another machine: ssh, as its user has set it, and rsync by it.
#pragma once

#include <string>
#include <vector>

#include "settings/configuration.h"

namespace trainyard::cli {

/// Without the host: nobody can be asked for a password.
std::vector<std::string> words_of_ssh(const settings::Configuration& configuration);

/// Without what is copied: it keeps times and links, takes files of the same size and time,
/// to the nanosecond, for the same, and gives up where nothing moves for a minute.
std::vector<std::string> words_of_rsync(const settings::Configuration& configuration);

}  // namespace trainyard::cli

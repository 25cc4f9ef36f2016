// Programs that bring something to several hosts, at work at once, and the command lines of ssh, as
// its user has set it, and of rsync by it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "settings/configuration.h"

namespace trainyard::cli {

struct HostProgram {
  std::string host;
  std::vector<std::string> command;
};

/// A host to which something could not be brought.
struct NotBrought {
  std::string host;
  std::string_view what;  ///< "the code"
  std::string why;        ///< From the program's own output, for people.
};

/// Runs them until all have ended, and says every few seconds for which it waits.
std::vector<NotBrought> bring(std::string_view what, const std::vector<HostProgram>& programs);

/// "lab1: cannot copy the code there: no such file".
std::string text_of(const NotBrought& it);

/// The words of ssh without the host: a password cannot be asked for.
std::vector<std::string> words_of_ssh(const settings::Configuration& configuration);

/// The words of rsync without the paths to copy. It keeps times and links, takes files of the same
/// size and time, to the nanosecond, as equal, and gives up if nothing moves for a minute.
std::vector<std::string> words_of_rsync(const settings::Configuration& configuration);

/// The command that starts trainyard on another host, for the shell there: as configured, or the
/// copy that is brought there. An error if this program cannot be found or read.
Result<std::string> agent_program(const settings::Configuration& configuration);

/// Copies trainyard to each host that the configuration names, where it is configured to be copied
/// and is missing: into the cache of the user there, under its version and a fingerprint of its
/// file, so that a copy never stands for another program. Needs only a shell there.
Result<std::vector<NotBrought>> copy_agents(const settings::Configuration& configuration);

}  // namespace trainyard::cli

// Commands of ours that another command follows: `trainyard ranks -n 4 -- python3 train.py`.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name.
class App;
}

namespace trainyard::cli {

/// Has a help that says that a command follows.
void takes_command(CLI::App& app);

/// The command line, without the -- between the options of these commands and what follows.
std::vector<const char*> without_separator(const CLI::App& app, std::span<const char* const> words);

/// The typed command after the options, with a shell before a single word that needs one. An error:
/// there is none, or an unknown option is in its place.
Result<std::vector<std::string>> typed_command(const CLI::App& app);

/// The directory for the logs of the started processes: next to the other files of a task, or the
/// current directory.
std::string usual_logs();

}  // namespace trainyard::cli

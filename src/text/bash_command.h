// The words that run a command that is written as one text. Pure.
#pragma once

#include <string>
#include <vector>

#include "text/shell_reader.h"

namespace trainyard::text {

/// The shell that runs texts.
inline constexpr const char* kBash = "/bin/bash";

/// The program and its arguments; arguments added to them are "$0" and "$@" of the text.
///
/// A text with a pipe runs with pipefail, so that `train | tee log` fails if `train` does. A
/// command that SIGPIPE has killed (status 141) is then not a failure of the text, if all others of
/// its last pipeline, the last command among them, have succeeded: `sort -r | head -n 1`. With `set
/// -e` it is one, since bash has stopped there.
std::vector<std::string> bash_command(std::string text, const ShellTraits& traits);

/// The same for a text that has no placeholders.
std::vector<std::string> bash_command(std::string text);

}  // namespace trainyard::text

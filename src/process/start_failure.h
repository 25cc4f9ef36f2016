// The reason why a process did not become its program, in words; and the search for programs.
//
// In the keeper only: looks at files that the process has looked at a moment before.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/event.h"
#include "model/launch.h"
#include "process/start.h"

namespace trainyard::process {

/// The cure where the name of a file starts with '~' in a list.
inline constexpr std::string_view kTildeWithoutShell =
    "no shell expands '~' here; write the full path, or the whole command as one string";

/// The files that may be meant by the name of a program, as execvp() looks for them with the PATH
/// of this environment: seen from the working directory, in order. Looks at none of them.
std::vector<std::string> places_of_program(const std::string& name,
                                           std::span<const char* const> environment);

/// Whether a file is a Python script without '#!' at its start: bash would run it as a script of its
/// own.
bool is_python_for_shell(const std::string& path);

/// One sentence for users with the step that failed, and the reason. `places`: the directories that
/// were searched for the program.
Error explain(const model::Launch& launch, std::span<const std::string> places,
              const StartFailure& failure);

/// The end of an attempt whose process could not be started.
model::NotStarted not_started(Error error);

}  // namespace trainyard::process

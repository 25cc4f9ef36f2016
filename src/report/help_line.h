// The line that a person can type so that waiting tasks can start.
#pragma once

#include <string>
#include <string_view>

#include "model/waiting.h"

namespace trainyard::report {

/// The line alone: "trainyard run --resume runs/sweep --set other-users=share", "max-per-gpu: 3".
/// Empty where nothing helps.
std::string help_line(const model::Help& help, std::string_view run_directory);

/// The line and what belongs to it: "to change this, stop the run and its running tasks (Ctrl-C or
/// kill -INT) and type: ...".
std::string help_text(const model::Help& help, std::string_view run_directory);

/// The same for a line without room for more: " (stop and resume with '--set other-users=share')".
std::string short_help_text(const model::Help& help);

/// "'trainyard retry runs/x --cascade' runs them again", of this number of tasks.
std::string runs_again_text(const std::string& command, int tasks);

}  // namespace trainyard::report

// The layout of `--help`: one sentence, the usage, examples, options in groups, notes.
#pragma once

#include <memory>
#include <string_view>

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name.
class FormatterBase;
}

namespace trainyard::cli {

/// Groups of commands on `trainyard --help`, in this order.
namespace command_groups {
constexpr const char* kRun = "Run";
constexpr const char* kWatch = "Watch";
constexpr const char* kChange = "Change";
constexpr const char* kMachine = "Machine";
constexpr const char* kSetup = "Setup";
/// Commands for scripts and for trainyard itself: not listed there.
constexpr const char* kPlumbing = "Plumbing";
}  // namespace command_groups

/// Groups of options.
namespace option_groups {
constexpr const char* kMachines = "Machines";
constexpr const char* kOutput = "Output";
constexpr const char* kSelection = "Selection";
constexpr const char* kTask = "Task options, for -- COMMAND (more: trainyard help task-options)";
/// Begins the groups of a task that are shown only by `trainyard help task-options`.
constexpr std::string_view kTaskPrefix = "task/";
}  // namespace option_groups

/// The topic of `trainyard help task-options`, a command that has nothing but these options.
constexpr const char* kTaskOptionsTopic = "task-options";

/// Joins the lines of these notes and breaks them at 80 columns. Lines that end with a full stop,
/// lines with an indent and empty lines stay the ends of lines.
std::string wrapped_notes(std::string_view notes);

/// Writes the help of a command. A footer that begins with "Examples:" is split at its first empty
/// line: the examples come before the options, the rest after them.
std::shared_ptr<CLI::FormatterBase> help_format();

}  // namespace trainyard::cli

// Options that several commands have.
#pragma once

#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name.
class App;
}

namespace trainyard::cli {

struct CommandWords;

/// Help of --snapshot, which `run` and `submit` have.
constexpr const char* kSnapshotHelp = "Run in a copy of the git work tree as it is now";

/// Adds the options of every command that reads the configuration. Both must outlive the command.
void add_configuration(CLI::App& command, std::string& file, std::vector<std::string>& settings);

/// `--json`, in the group of output options.
void add_json(CLI::App& command, bool& json);

/// Check of an option that names a run. Returns the error of an empty name, as an unset variable
/// has it: it must not mean the run that the command takes without the option. Else empty.
std::string empty_run_error(const std::string& typed);

/// Check of an option that names a job file, as empty_run_error().
std::string empty_job_file_error(const std::string& typed);

/// "'trainyard run --resume runs/NAME' continues a run in it": the cure where a directory of runs
/// was typed as a run. Empty if it has no runs in it.
std::string resume_run_in(const std::string& directory);

/// The mistake of a directory without a run of its own that was typed as a job file. Names the job
/// files or the runs in it.
std::string directory_as_job_file(const std::string& typed);

/// Keys of the task of a command on the command line, its matrix, its name: all but the command.
void add_command_words(CLI::App& command, CommandWords& words);
/// The topic of `trainyard help task-options`.
void add_task_options_topic(CLI::App& app, CommandWords& words);

/// The typed words without the command after `--`, for `run` and `submit`; the command goes into
/// `command`.
std::vector<const char*> without_command(const std::vector<const char*>& words,
                                         std::vector<std::string>& command);
/// Whether the words after `--` of this command belong to another program.
bool takes_command(const std::string& command);

}  // namespace trainyard::cli

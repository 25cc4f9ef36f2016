// A program in the place of a job file: `trainyard run fit.py`.
#pragma once

#include <optional>
#include <string>

#include "job/job.h"
#include "text/mistake.h"
#include "text/yaml_reader.h"

namespace trainyard::job {

/// Whether a file's name is that of a job file: .yaml, .yml or .json.
bool is_named_as_job(const std::string& path);

/// "python3 fit.py" or "bash fit.sh", with the file in quotes where it needs them; empty for a file
/// that is not named as a script.
std::string command_of_script(const std::string& path);

/// The mistake that the job file is a program, with the command to run it; nothing for another
/// file. Programs are files named .py or .sh, and executable files, unless they have the key
/// 'groups' or are named as job files; and scripts for Slurm, whatever their names.
std::optional<text::Mistake> program_mistake(const LoadOptions& options,
                                             const text::YamlDocument& document);

/// The mistakes of a document that has some. A program has one: program_mistake(). Where the keys
/// were typed as options, the messages name the options.
text::Mistakes take_mistakes(text::MistakeList mistakes, const LoadOptions& options,
                             const text::YamlDocument& document);

}  // namespace trainyard::job

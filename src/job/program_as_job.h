// A program that was given where a job file is expected: `trainyard run fit.py`.
#pragma once

#include <string>

#include "job/job.h"
#include "text/mistake.h"
#include "text/yaml_reader.h"

namespace trainyard::job {

/// Whether a file is meant as a job file by its name: .yaml, .yml or .json.
bool is_named_as_job(const std::string& path);

/// The mistakes of a document that has some. A program has one: how to run it. Programs are files
/// named .py or .sh, and executable files, unless they have the key 'groups' or are named as job
/// files.
text::Mistakes take_mistakes(text::MistakeList mistakes, const LoadOptions& options,
                             const text::YamlDocument& document);

}  // namespace trainyard::job

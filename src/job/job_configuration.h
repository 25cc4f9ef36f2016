// The configuration of a job file: the layers of settings/configuration.h, with the file's own keys
// between them. For the files of this folder alone.
#pragma once

#include <string>

#include "job/job.h"
#include "settings/configuration.h"
#include "text/mistake.h"
#include "text/yaml_reader.h"

namespace trainyard::job {

/// `directory` is that of the file: a relative workdir starts there. The configuration of a
/// submission may only be about its own tasks.
settings::Configuration layered(const LoadOptions& options, const text::YamlDocument& document,
                                const std::string& directory, text::MistakeList& mistakes);

}  // namespace trainyard::job

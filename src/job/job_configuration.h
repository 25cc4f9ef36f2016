// The configuration of a job file: the layers of settings/configuration.h, with what the file says
// of its own between them. For the files of this folder alone.
#pragma once

#include <string>

#include "job/job.h"
#include "settings/configuration.h"
#include "text/mistake.h"
#include "text/yaml_reader.h"

namespace trainyard::job {

/// `directory` is that of the file: what a relative workdir starts at. Of a submission its own may
/// only be about its own tasks.
settings::Configuration layered(const LoadOptions& options, const text::YamlDocument& document,
                                const std::string& directory, text::MistakeList& mistakes);

}  // namespace trainyard::job

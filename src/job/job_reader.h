// Reads a job file's YAML into a JobSpec: which keys there are, of which type, with which
// placeholders. What only shows once the matrix is multiplied is checked in job_plan.h.
#pragma once

#include <string>

#include "job/job_files.h"
#include "job/job_spec.h"
#include "text/mistake.h"
#include "text/yaml_reader.h"

namespace trainyard::job {

struct JobOrigin {
  std::string directory;  ///< The job file's.
  JobFiles files;         ///< What these say, whatever stands there now.
};

/// Mistakes are added; what could be read comes back all the same, so that more of them can be
/// found.
JobSpec read_job(const text::YamlDocument& document, JobOrigin origin, text::MistakeList& mistakes);

}  // namespace trainyard::job

// Reads a job file's YAML into a JobSpec: the keys, their types, and their placeholders. Mistakes
// that only show once the matrix is multiplied are found in job_plan.h.
#pragma once

#include <string>
#include <string_view>

#include "job/job_files.h"
#include "job/job_spec.h"
#include "text/mistake.h"
#include "text/yaml_reader.h"

namespace trainyard::job {

struct JobOrigin {
  std::string directory;  ///< The job file's.
  JobFiles files;         ///< Files whose contents count, whatever is on the disk now.
};

/// The message for a job file without any key.
constexpr std::string_view kEmptyJobFile = "is empty; a job file needs 'groups'";

/// Mistakes are added; the valid part is returned all the same, so that more mistakes can be found.
JobSpec read_job(const text::YamlDocument& document, JobOrigin origin, text::MistakeList& mistakes);

}  // namespace trainyard::job

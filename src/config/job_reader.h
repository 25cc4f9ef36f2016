// Reads a job file's YAML into a JobSpec: which keys there are, of which type, with which
// placeholders. What only shows once the matrix is multiplied is checked in job_plan.h.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "config/job_spec.h"
#include "config/mistake.h"
#include "config/yaml_reader.h"

namespace trainyard {

/// `directory` is the job file's. Mistakes are added; what could be read comes back all the same,
/// so that more of them can be found.
JobSpec read_job(const YamlDocument& document, const std::string& directory, MistakeList& mistakes);

// The keys that there are: of a job file, of a group, of a task. In no order.
std::span<const std::string_view> keys_of_job();
std::span<const std::string_view> keys_of_group();
std::span<const std::string_view> keys_of_task();

}  // namespace trainyard

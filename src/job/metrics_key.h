// Reads `metrics` of a group or a task: the pattern that finds numbers in its output. It has no
// placeholder, and is compiled once here, not for each task of a matrix.
#pragma once

#include <optional>

#include "job/job_spec.h"
#include "text/key_reader.h"
#include "text/yaml_reader.h"

namespace trainyard::job {

/// Nothing, and a mistake, for a value that is not a pattern that finds something.
std::optional<Text> read_metrics(const text::Complainer& to, const text::YamlNode& node);

}  // namespace trainyard::job

// Reads `launcher` of a group or a task: the program that starts its ranks.
#pragma once

#include <optional>

#include "job/job_spec.h"
#include "text/key_reader.h"
#include "text/yaml_reader.h"

namespace trainyard::job {

/// A name, or a list; as text that text::parse_launcher() reads. Nothing, and a mistake, for other
/// values.
std::optional<Text> read_launcher(const text::Complainer& to, const text::YamlNode& node);

}  // namespace trainyard::job

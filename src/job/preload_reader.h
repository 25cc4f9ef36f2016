// Reads `preload`: Python modules that are imported once for all tasks of a group.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "job/job_spec.h"
#include "text/key_reader.h"
#include "text/yaml_reader.h"

namespace trainyard::job {

/// The names of the modules; complains of other values.
std::vector<std::string> read_preload(const text::Complainer& to, const text::YamlNode& node);

/// Complains of a task whose command is not like 'python3 train.py'; `slots` is the number of
/// values that its placeholders may have.
void check_preloaded(const text::Complainer& to, const TaskSpec& task, std::size_t slots);

}  // namespace trainyard::job

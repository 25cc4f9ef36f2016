// What a group says under `needs`: names of groups, and of those of which its tasks are matched
// with tasks of its own by which keys of the matrix.
#pragma once

#include <vector>

#include "job/job_spec.h"
#include "text/key_reader.h"
#include "text/yaml_reader.h"

namespace trainyard::job {

/// `before` are the groups that stand before it in the file: what is matched has to be one of them.
/// Complains of what is wrong, and leaves it out.
std::vector<Need> read_needs(const text::Complainer& to, const text::YamlNode& node,
                             const std::vector<GroupSpec>& before);

}  // namespace trainyard::job

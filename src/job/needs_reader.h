// Reads `needs` of a group: names of groups, and the keys of the matrix by which tasks of both
// groups are matched.
#pragma once

#include <vector>

#include "job/job_spec.h"
#include "text/key_reader.h"
#include "text/yaml_reader.h"

namespace trainyard::job {

/// `before` are the groups before it in the file: a matched group must be one of them. Complains of
/// mistakes, and leaves these needs out.
std::vector<Need> read_needs(const text::Complainer& to, const text::YamlNode& node,
                             const std::vector<GroupSpec>& before);

}  // namespace trainyard::job

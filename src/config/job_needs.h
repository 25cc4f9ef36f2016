// Which groups wait for which: `needs` by name, or the group before.
#pragma once

#include <vector>

#include "config/job_spec.h"
#include "config/mistake.h"
#include "config/yaml_reader.h"
#include "model/ids.h"

namespace trainyard {

/// The needs of each group. Unknown names and circles are mistakes.
std::vector<std::vector<GroupIndex>> resolve_needs(const JobSpec& spec,
                                                   const YamlDocument& document,
                                                   MistakeList& mistakes);

}  // namespace trainyard

// The order of the groups: by the names in `needs`, or after the group before.
#pragma once

#include <span>
#include <vector>

#include "job/job_spec.h"
#include "model/ids.h"
#include "model/plan.h"
#include "text/mistake.h"
#include "text/yaml_reader.h"

namespace trainyard::job {

struct Needs {
  std::vector<model::GroupIndex> own;      ///< Groups of the same file.
  std::vector<model::GroupIndex> earlier;  ///< Groups of earlier batches, numbered over the whole
                                           ///< run.
  std::vector<model::GroupIndex> by_task;  ///< Groups of the same file, matched task by task.
};

/// The groups of the batches before, in order.
using GroupsBefore = std::span<const model::PlannedGroup* const>;

/// The needs of each group. A name is that of a group of the file, else what people call one of
/// `groups_before`, or the name of the latest that has it. Unknown names and circles are mistakes.
std::vector<Needs> resolve_needs(const JobSpec& spec, GroupsBefore groups_before,
                                 const text::YamlDocument& document, text::MistakeList& mistakes);

}  // namespace trainyard::job

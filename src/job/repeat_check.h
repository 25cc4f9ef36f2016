// What can be wrong with a repeat that shows when its groups have been read.
#pragma once

#include "job/job_spec.h"
#include "text/mistake.h"
#include "text/yaml_reader.h"

namespace trainyard::job {

/// A value of the round before of one task where there are several, one that round 0 has not, a
/// group that is called as one in a round is. Looked at in round 0 for all rounds.
void check_repeat(const JobSpec& spec, const text::YamlDocument& document,
                  text::MistakeList& mistakes);

}  // namespace trainyard::job

// Finds mistakes in a repeat that show when its groups have been read.
#pragma once

#include "job/job_spec.h"
#include "text/mistake.h"
#include "text/yaml_reader.h"

namespace trainyard::job {

/// Finds a value of one task of the round before where there are several, a value that round 0 does
/// not have, and a group with the name of one in a round. Checked in round 0 for all rounds.
void check_repeat(const JobSpec& spec, const text::YamlDocument& document,
                  text::MistakeList& mistakes);

}  // namespace trainyard::job

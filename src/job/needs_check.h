// Reads the needs of groups, and finds mistakes in them that only show when a job has been
// multiplied, and those of a repeat that show when its groups have been read.
#pragma once

#include <vector>

#include "job/job_plan.h"
#include "job/job_spec.h"
#include "text/key_reader.h"
#include "text/mistake.h"
#include "text/yaml_reader.h"

namespace trainyard::job {

/// Reads `needs` of a group: names of groups, and the keys of the matrix by which tasks of both
/// groups are matched.
/// `before` are the groups before it in the file: a matched group must be one of them. Complains of
/// mistakes, and leaves these needs out.
std::vector<Need> read_needs(const text::Complainer& to, const text::YamlNode& node,
                             const std::vector<GroupSpec>& before);

/// A directory or a result of one task where there are several, a group that is not in the file, a
/// condition that never holds.
void check_needs(const JobSpec& spec, const PlannedJob& job, const text::YamlDocument& document,
                 text::MistakeList& mistakes);

/// Finds a value of one task of the round before where there are several, a value that round 0 does
/// not have, and a group with the name of one in a round. Checked in round 0 for all rounds.
void check_repeat(const JobSpec& spec, const text::YamlDocument& document,
                  text::MistakeList& mistakes);

}  // namespace trainyard::job

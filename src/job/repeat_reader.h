// Reads what a job file says of groups that run round after round: how often at most, until what
// holds, and what round 0 sees of the round before. Its groups are read as all others.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "job/job_spec.h"
#include "text/key_reader.h"
#include "text/yaml_reader.h"

namespace trainyard::job {

/// The maximum number of rounds of a repeat.
constexpr std::uint32_t kRoundsMax = 10'000;

/// Whether an item of `groups` is a repeat and not a group.
bool is_repeat(const text::YamlNode& node);

/// `repeated` are the names of its groups. Complains of unknown keys and invalid values, and
/// returns the valid part.
RepeatSpec read_repeat(const text::Complainer& to, const text::YamlNode& node,
                       const std::vector<std::string>& repeated);

/// Its groups as configured; none after a complaint.
std::vector<const text::YamlNode*> groups_of_repeat(const text::Complainer& to,
                                                    const text::YamlNode& node);

}  // namespace trainyard::job

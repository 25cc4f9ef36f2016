// Placeholders for what a task needs: "{needs.train.dir}", "{needs.train.dirs}" and
// "{needs.train.result.acc}"; in a repeat the same of the round before, as "{prev.server.dir}".
// Their values are known when a task starts, and not before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "job/job_spec.h"
#include "text/yaml_reader.h"

namespace trainyard::job {

/// The groups whose values a group can use.
struct ValueGroups {
  std::vector<std::string> needed;
  std::vector<std::string> repeated;  ///< In the round before.
};

/// The values that a group may use, in the order of their slots: the directories of each of the
/// groups, and the results that are named anywhere in `node`, which is the group as configured.
std::vector<NeedsValue> needs_values(const text::YamlNode& node, const ValueGroups& groups);

/// "needs.train.result.acc"
std::string name_of(const NeedsValue& value);

/// The slot of {round}, in a group of a repeat.
std::size_t round_slot(const GroupSpec& group);

/// The slot of the first of them.
std::size_t first_needs_slot(const GroupSpec& group);

}  // namespace trainyard::job

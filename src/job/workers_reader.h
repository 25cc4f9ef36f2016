// Reads `workers` of a group or a task where it is keys with values, {collector: 2, learner: 1}: as
// the text that job/workers_text.h reads, so that its numbers may be placeholders.
#pragma once

#include <optional>

#include "text/key_reader.h"
#include "text/yaml_reader.h"

namespace trainyard::job {

/// The node with that text in its place; nothing, and a mistake, for roles that are none. Any other
/// node is as it was.
std::optional<text::YamlNode> workers_as_text(const text::Complainer& to,
                                              const text::YamlNode& node);

}  // namespace trainyard::job

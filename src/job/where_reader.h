// Reads `where` of a group or a task in the form of keys with values, {machine: 'lab*', gpu: H100}:
// as the text that model/site_wish.h reads, so that its patterns may have placeholders.
#pragma once

#include <optional>

#include "text/key_reader.h"
#include "text/yaml_reader.h"

namespace trainyard::job {

/// The node with that text in its place; nothing, and a mistake, for what says no machine and no
/// GPU. A single text is as it was.
std::optional<text::YamlNode> where_as_text(const text::Complainer& to, const text::YamlNode& node);

}  // namespace trainyard::job

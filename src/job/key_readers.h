// Reads the keys of a group or a task whose values have a form of their own: `launcher`, `metrics`,
// `preload`, `where` and `workers`. A wrong value is nothing, and adds a mistake.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "job/job_spec.h"
#include "text/key_reader.h"
#include "text/yaml_reader.h"

namespace trainyard::job {

/// The program that starts the ranks, a name or a list, as text that text::parse_launcher() reads.
std::optional<Text> read_launcher(const text::Complainer& to, const text::YamlNode& node);

/// The pattern that finds numbers in the output. It has no placeholder, and is compiled once here,
/// not for each task of a matrix.
std::optional<Text> read_metrics(const text::Complainer& to, const text::YamlNode& node);

/// The Python modules that are imported once for all tasks of a group.
std::vector<std::string> read_preload(const text::Complainer& to, const text::YamlNode& node);

/// Complains of a task whose command is not like 'python3 train.py'; `slots` is the number of
/// values that its placeholders may have.
void check_preloaded(const text::Complainer& to, const TaskSpec& task, std::size_t slots);

/// The node of `where` with keys and values, {machine: 'lab*', gpu: H100}, as the text that
/// model/site_wish.h reads, so that its patterns may have placeholders. A single text is as it was.
std::optional<text::YamlNode> where_as_text(const text::Complainer& to, const text::YamlNode& node);

/// The node of `workers` with keys and values, {collector: 2, learner: 1}, as the text that
/// job/term_text.h reads, so that its numbers may be placeholders. A single text is as it was.
std::optional<text::YamlNode> workers_as_text(const text::Complainer& to,
                                              const text::YamlNode& node);

}  // namespace trainyard::job

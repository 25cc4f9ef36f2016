// The keys that set the number of processes of a task, which exclude each other. Pure.
#pragma once

#include <string_view>
#include <vector>

#include "job/job_spec.h"
#include "text/yaml_reader.h"

namespace trainyard::job {

struct ProcessMistake {
  text::Place place;
  std::string_view key;
  std::string_view message;
};

/// The mistakes of a task, with the keys of its group. They do not depend on placeholders.
std::vector<ProcessMistake> process_mistakes(const GroupSpec& group, const TaskSpec& task);

}  // namespace trainyard::job

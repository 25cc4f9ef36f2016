// Which keys say how many processes a task is, and do not go together. Pure.
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

/// Of a task with what its group says. They do not depend on the values of its placeholders.
std::vector<ProcessMistake> process_mistakes(const GroupSpec& group, const TaskSpec& task);

}  // namespace trainyard::job

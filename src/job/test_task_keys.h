// Job files that say each key of the table in turn. For tests only.
#pragma once

#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/bytes.h"
#include "job/task_keys.h"
#include "job/test_job.h"
#include "model/resources.h"

namespace trainyard::job {

/// A machine on which every example may run.
inline model::Capacity examples_machine() {
  model::Capacity capacity = small_machine();
  for (int i = 0; i < 2; ++i) {
    capacity.gpus.push_back(
        {.number = i, .uuid = fmt::format("GPU-{}", i), .name = "card", .memory = gb(16)});
  }
  return capacity;
}

/// The other keys that must be set so that a key has a meaning.
inline std::string needed_by(TaskKey key) {
  const std::string needs(info_of(key).example_needs);
  return needs.empty() ? needs : needs + ", ";
}

inline std::string job_text(std::string_view of_group, std::string_view of_task) {
  return fmt::format("groups:\n- {{name: a, {}tasks: [{{{}command: ./t}}]}}\n", of_group, of_task);
}

inline std::string said(const TaskKeyInfo& info) {
  return fmt::format("{}: {}, ", info.name, info.example);
}

}  // namespace trainyard::job

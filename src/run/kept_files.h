// Files of a task's directory that stay when its content is deleted: results and logs.
#pragma once

#include <string_view>

namespace trainyard::run {

/// "result.json", "result.1.json"
inline bool is_result_file(std::string_view name) {
  return name.starts_with("result.") && name.ends_with(".json");
}

/// "stdout.log", "stderr.2.log", "rank-1.log", "worker-0.log"; and files that a parallel run leaves
/// next to its logs, or in the log directory of a later attempt: "workers.json", "workers.2".
inline bool is_log_file(std::string_view name) {
  const bool is_ours = name.starts_with("stdout.") || name.starts_with("stderr.") ||
                       name.starts_with("rank-") || name.starts_with("worker-");
  return (is_ours && name.ends_with(".log")) || name.starts_with("workers.");
}

}  // namespace trainyard::run

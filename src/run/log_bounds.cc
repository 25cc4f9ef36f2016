#include "run/log_bounds.h"

#include <fmt/format.h>

#include "base/result.h"
#include "sys/log_bound.h"

namespace trainyard::run {

std::vector<std::string> streams_of(const model::Launch& launch) {
  std::vector<std::string> streams;
  if (!launch.stdout_path.empty()) streams.push_back(launch.stdout_path);
  if (!launch.stderr_path.empty() && launch.stderr_path != launch.stdout_path) {
    streams.push_back(launch.stderr_path);
  }
  return streams;
}

std::vector<std::string> logs_of(const model::Launch& launch) {
  std::vector<std::string> logs = streams_of(launch);
  if (launch.own_ranks) {
    logs.insert(logs.end(), launch.own_ranks->log_paths.begin(), launch.own_ranks->log_paths.end());
  }
  return logs;
}

void LogBounds::look(const std::vector<std::string>& logs, OnNote& on_note) {
  if (most_ == Bytes{} || cannot_) return;
  for (const std::string& log : logs) {
    const Result<Bytes> dropped = sys::bound_log(log, most_);
    if (dropped && *dropped == Bytes{}) continue;
    cannot_ = !dropped;
    if (!on_note || (dropped && !told_.insert(log).second)) continue;
    on_note(dropped ? fmt::format("'{}' has more than {}: its beginning and its end are kept "
                                  "(limits.log)",
                                  log, to_text(most_))
                    : fmt::format("logs may grow beyond limits.log ({}): {}", to_text(most_),
                                  dropped.error().message));
    if (cannot_) return;
  }
}

}  // namespace trainyard::run

#include "run/log_bounds.h"

#include <utility>

#include <fmt/format.h>

#include "base/result.h"

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

void LogFeed::add(model::AttemptKey key, const std::vector<std::string>& paths) {
  std::vector<Log> logs;
  logs.reserve(paths.size());
  for (const std::string& path : paths) logs.push_back({.file = sys::Tail(path)});
  logs_.insert_or_assign(key, std::move(logs));
}

void LogFeed::look(const std::function<bool()>& has_room,
                   const std::function<void(wire::AgentLog)>& tell) {
  for (auto& [key, logs] : logs_) {
    for (Log& log : logs) look_at(log, has_room, tell);
  }
}

/// A log that cannot be read is looked at again, and comes with the files at the latest.
void LogFeed::look_at(Log& log, const std::function<bool()>& has_room,
                      const std::function<void(wire::AgentLog)>& tell) {
  for (int piece = 0; piece < kPiecesMax && has_room(); ++piece) {
    const bool anew = !log.begun || log.file.unread().anew;
    Result<std::string> bytes = log.file.read_more();
    if (!bytes || bytes->empty()) return;
    log.begun = true;
    tell({.path = log.file.path(), .anew = anew, .bytes = std::move(*bytes)});
  }
}

}  // namespace trainyard::run

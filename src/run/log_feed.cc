#include "run/log_feed.h"

#include <utility>

#include "base/result.h"

namespace trainyard::run {

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

// The logs of running attempts: kept within their maximum on disk (limits.log), and passed on to a
// yard that has another disk.
//
// Belongs to the thread of the machine.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "model/ids.h"
#include "model/launch.h"
#include "sys/tail.h"
#include "wire/agent.h"

namespace trainyard::run {

/// The outputs of the first process of an attempt, each file once: the one to read first comes
/// first.
std::vector<std::string> streams_of(const model::Launch& launch);

/// The same of all of its processes.
std::vector<std::string> logs_of(const model::Launch& launch);

/// Reports once for each attempt that some of its logs was dropped.
class LogBounds {
 public:
  /// Receives notes for the user, a line each. May be missing.
  using OnNote = std::move_only_function<void(const std::string&)>;

  /// 0: any size is allowed.
  explicit LogBounds(Bytes most) : most_(most) {}

  /// Costs a stat(2) of each.
  void look(const std::vector<std::string>& logs, OnNote& on_note);

 private:
  Bytes most_;
  std::set<std::string> told_;
  bool cannot_ = false;  ///< It was reported that a log cannot be bounded.
};

/// The output of attempts on a machine whose disk is not the yard's, passed on as it grows: the next
/// pieces of their logs, as long as a yard listens.
class LogFeed {
 public:
  /// Maximum number of pieces of one log at one look.
  static constexpr int kPiecesMax = 4;

  /// The attempt has begun, and prints there.
  void add(model::AttemptKey key, const std::vector<std::string>& paths);
  /// The attempt has ended: its output since the last look comes with its files.
  void remove(model::AttemptKey key) { logs_.erase(key); }

  /// Passes on new output, each piece in turn while `has_room` returns true.
  void look(const std::function<bool()>& has_room, const std::function<void(wire::AgentLog)>& tell);

 private:
  struct Log {
    sys::Tail file;
    bool begun = false;
  };

  static void look_at(Log& log, const std::function<bool()>& has_room,
                      const std::function<void(wire::AgentLog)>& tell);

  std::map<model::AttemptKey, std::vector<Log>> logs_;
};

}  // namespace trainyard::run

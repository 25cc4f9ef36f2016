// What attempts print on a machine whose disk is not the yard's, told as it grows: the next pieces
// of their logs, as long as somebody listens.
//
// One thread.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "model/ids.h"
#include "sys/tail.h"
#include "wire/agent.h"

namespace trainyard::run {

class LogFeed {
 public:
  /// So many pieces of one log at one look at most.
  static constexpr int kPiecesMax = 4;

  /// It has begun, and prints there.
  void add(model::AttemptKey key, const std::vector<std::string>& paths);
  /// It has ended: what it has printed since the last look comes with its files.
  void remove(model::AttemptKey key) { logs_.erase(key); }

  /// What is new, each piece in turn while `has_room` says so.
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

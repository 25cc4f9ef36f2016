// The output of attempts on a machine whose disk is not the yard's, passed on as it grows: the next
// pieces of their logs, as long as a yard listens.
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

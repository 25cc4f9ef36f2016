// Runs a command that somebody else has written, and ends it when it is asked to.
//
// Not for tasks: those are the keeper's. Blocks the calling thread until the command has ended.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace trainyard::sys {

struct StoppableCommand {
  std::vector<std::string> arguments;    ///< The program, looked up on PATH, and its arguments.
  std::vector<std::string> environment;  ///< Beside ours, as NAME=value; of two it is this one.
  Duration grace{5'000};                 ///< Between TERM and KILL.
};

/// How it ended.
struct CommandEnd {
  int exit_code = 0;
  int signal = 0;  ///< What killed it; 0: nothing.
};

/// It has a process group of its own and prints where we do. Once `stop` is asked for its group
/// gets TERM, then KILL; what it leaves behind in the group is killed. An error when it cannot be
/// run.
Result<CommandEnd> run_stoppable(const StoppableCommand& command, const std::stop_token& stop);

}  // namespace trainyard::sys

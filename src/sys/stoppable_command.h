// Runs a command that somebody else has written, and ends it when it is asked to.
//
// Not for tasks: those are the keeper's. Blocks the calling thread until the command has ended.
#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace trainyard::sys {

struct StoppableCommand {
  std::vector<std::string> arguments;    ///< The program, looked up on PATH, and its arguments.
  std::vector<std::string> environment;  ///< Beside ours, as NAME=value; of two it is this one.
  std::string directory;                 ///< Where it runs; empty: where we do.
  std::string output;                    ///< A file for what it prints, made anew; empty: ours.
  std::optional<Duration> deadline;      ///< It is asked to stop when it has run so long.
  Duration grace{5'000};                 ///< Between TERM and KILL.
  /// INT and TERM ask it to stop, and not us to end. For programs of one thread, not for libraries.
  bool stops_on_signals = false;
};

/// How it ended.
struct CommandEnd {
  int exit_code = 0;
  int signal = 0;     ///< What killed it; 0: nothing.
  bool late = false;  ///< It was asked to stop at its deadline,
  int asked_by = 0;   ///< or by this signal.
};

/// It has a process group of its own. Once it is asked to stop its group gets TERM, then KILL; what
/// it leaves behind in the group is killed. Where it has a file for its output its standard input
/// is empty. An error when it cannot be run.
Result<CommandEnd> run_stoppable(const StoppableCommand& command, const std::stop_token& stop);

}  // namespace trainyard::sys

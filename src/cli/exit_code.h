// The exit codes of the program.
#pragma once

#include <csignal>

namespace trainyard::cli {

/// The exit codes of `run`. Other commands use those that they need with the same meaning, and 1 if
/// they could not do what was asked.
enum class ExitCode : int {
  Success = 0,        ///< All tasks have finished.
  TaskFailed = 1,     ///< Some failed or were skipped.
  Usage = 2,          ///< Nothing was done: the command line, the job file or the place is wrong.
  NotDone = 75,       ///< Not all is done, and no task is to blame: `run --resume` continues.
  Interrupted = 130,  ///< Ctrl-C, or the program that held the run let go of it.
  Terminated = 143,   ///< TERM.
};

/// The exit code after this signal; 0: something else interrupted.
constexpr ExitCode interrupted_by(int signal) {
  return signal == SIGTERM ? ExitCode::Terminated : ExitCode::Interrupted;
}

/// The exit codes as text for `--help`.
constexpr const char* kExitCodes =
    "Exit codes: 0 all tasks finished; 1 some failed or were skipped; 2 nothing done;\n"
    "75 incomplete, none failed ('run --resume' continues); 130 Ctrl-C; 143 SIGTERM.";

}  // namespace trainyard::cli

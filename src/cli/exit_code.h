// What the program tells the shell.
#pragma once

namespace trainyard::cli {

/// Of `run`, and each means the same wherever it comes from. Another command has 1 for what it
/// could not do.
enum class ExitCode : int {
  Success = 0,       ///< All tasks have finished.
  TaskFailed = 1,    ///< Some failed or were skipped.
  Usage = 2,         ///< Nothing was done: the command line, the job file or the place is wrong.
  NotDone = 75,      ///< Not all is done, and no task is to blame: `run --resume` goes on.
  Interrupted = 130  ///< Ctrl-C, TERM.
};

/// What a person reads of them.
constexpr const char* kExitCodes =
    "Exit codes: 0 all tasks finished, 1 some failed, 2 nothing was done (refused), 75 not all is\n"
    "done and no task is to blame ('run --resume' goes on), 130 interrupted (Ctrl-C).";

}  // namespace trainyard::cli

// What the program tells the shell.
#pragma once

namespace trainyard::cli {

enum class ExitCode : int {
  Success = 0,
  TaskFailed = 1,    ///< Some task failed or was skipped; or the yard could not do its work.
  Usage = 2,         ///< Nothing was run: the command line, the job file or the place is wrong.
  Interrupted = 130  ///< Ctrl-C, TERM.
};

}  // namespace trainyard::cli

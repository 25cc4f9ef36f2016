// The exit codes of the program.
#pragma once

#include <csignal>

#include "run/run_outcome.h"

namespace trainyard::cli {

using run::ExitCode;

/// The exit code after this signal; 0: something else interrupted.
constexpr ExitCode interrupted_by(int signal) {
  return signal == SIGTERM ? ExitCode::Terminated : ExitCode::Interrupted;
}

/// The exit codes as text for `--help`.
constexpr const char* kExitCodes =
    "Exit codes: 0 all tasks finished; 1 some failed or were skipped; 2 nothing done;\n"
    "75 incomplete ('run --resume' continues it); 130 Ctrl-C; 143 SIGTERM.";

}  // namespace trainyard::cli

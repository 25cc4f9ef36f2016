// Runs a short command of our own and keeps what it prints: `git rev-parse HEAD`, `git diff`.
//
// Not for tasks: those are the keeper's. Blocks the calling thread, at most until the deadline.
#pragma once

#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"

namespace trainyard::sys {

struct HelperCommand {
  std::vector<std::string> arguments;  ///< The program, looked up on PATH, and its arguments.
  std::string directory;               ///< The working directory.
  Bytes output_max = mib(1);
  Duration deadline{10'000};
};

struct HelperOutput {
  std::string text;   ///< Its standard output, the first `output_max` of it.
  bool cut = false;   ///< There was more; the command was ended.
  int exit_code = 0;  ///< -1 when a signal ended it.
};

/// An error when it cannot be started, or has not ended at the deadline: then it is killed. Its
/// output on standard error is lost; standard input is empty.
Result<HelperOutput> run_helper(const HelperCommand& command);

}  // namespace trainyard::sys

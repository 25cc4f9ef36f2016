// The outcome of a run, from its directory: for commands that wait for it, and for a queue.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "cli/exit_code.h"

namespace trainyard::cli {

struct RunOutcome {
  enum class Stage : std::uint8_t {
    NotBegun,
    AtWork,
    Died,         ///< Its yard is gone and has not said how it ended.
    Interrupted,  ///< A user or a signal stopped it.
    Over,
  };
  Stage stage = Stage::NotBegun;
  /// The exit code of `trainyard run`, as it was or would have been; 75 for a run that has not
  /// ended.
  ExitCode code = ExitCode::NotDone;
  /// The exit code of the task, for a run with a single task that exited with an error by itself.
  std::optional<int> task_code;
  /// The reason for a code other than 0, for users: "1 of 6 tasks failed, 2 were skipped".
  std::string why;
};

Result<RunOutcome> outcome_of(const std::string& run_directory);

}  // namespace trainyard::cli

// The outcome of a run: the exit code of `trainyard run`, and the reason for it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace trainyard::run {

/// The exit codes of `run`. Other commands use those that they need with the same meaning, and 1 if
/// they could not do what was asked.
enum class ExitCode : int {
  Success = 0,        ///< All tasks have finished.
  TaskFailed = 1,     ///< Some failed or were skipped.
  Usage = 2,          ///< Nothing was done: the command line, the job file or the place is wrong.
  NotDone = 75,       ///< Incomplete, and tasks may have failed, too: `run --resume` continues.
  Interrupted = 130,  ///< Ctrl-C, or the program that held the run let go of it.
  Terminated = 143,   ///< TERM.
};

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
  std::optional<int> task_code = std::nullopt;
  /// The reason for a code other than 0, for users: "1 of 6 tasks failed, 2 were skipped".
  std::string why = {};
};

}  // namespace trainyard::run

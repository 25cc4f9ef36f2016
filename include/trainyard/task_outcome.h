// The outcome of a task, for programs to decide by; Task::message() is the text for users.
#pragma once

#include <cstdint>
#include <string_view>

namespace trainyard {

enum class TaskOutcome : std::uint8_t {
  None,         ///< It has not ended, or has not been run.
  Finished,     ///< It has its result.
  Exception,    ///< load() or train() threw.
  OutOfMemory,  ///< Of the host or of a GPU, with no try left.
  TimeLimit,    ///< It ran longer than it may.
  Killed,       ///< By a signal from outside, by Yard::cancel() or by `trainyard kill`.
  Crashed,      ///< By a signal for an error of the program, as SIGSEGV: Task::exit_code().
  Exited,       ///< Its process ended by itself: Task::exit_code().
  NotStarted,   ///< No process came to be.
  Lost,         ///< Nobody knows: who watched it died.
  Skipped,      ///< It never started: fail_fast, or cancelled before its turn.
  Stopped,      ///< The yard was stopped before it had ended.
};

/// "FINISHED", "ERROR", "OUT_OF_MEMORY", "TIMEOUT", "KILLED", "CRASHED", "EXIT", "CANNOT_START",
/// "LOST", "SKIPPED", "STOPPED"; "WAITING" of None. The words of `trainyard status`, except that a
/// crash has the name of its signal there.
std::string_view to_text(TaskOutcome outcome);

}  // namespace trainyard

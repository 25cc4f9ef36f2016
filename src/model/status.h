// The outcomes of a task besides its status, and their words for users.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "trainyard/status.h"  // IWYU pragma: export

namespace trainyard::model {

/// Why a task is in EXCEPTION or INTERRUPT.
enum class Failure : std::uint8_t {
  None = 0,
  OutOfMemory = 1,
  Timeout = 2,      ///< Over its time limit.
  Killed = 3,       ///< By a signal from outside: the user, `trainyard kill`, the kernel.
  Exit = 4,         ///< Ended by itself with a code other than 0.
  CannotStart = 5,  ///< No process came to be: no such file, not executable, no directory, ...
  Lost = 6,         ///< Nobody knows: the keeper died, or the yard before it.
  Error = 7,        ///< A stage of a two-phase task said that it failed: an exception, say.
  Crashed = 8,      ///< By a signal for an error of the program: SIGSEGV, SIGABRT, ...
};

/// The final outcome of a task. Each task of a run gets exactly one.
enum class Verdict : std::uint8_t {
  None = 0,         ///< It has not ended yet.
  Finished = 1,     ///< EXITED, with its result.
  Failed = 2,       ///< EXCEPTION; Failure says why.
  Skipped = 3,      ///< Never started: a group it needs failed, or its own with fail-fast, or the
                    ///< task of its own that was tried first.
  Stopped = 4,      ///< The run was interrupted before the task had ended. Resuming runs it again.
  NotSelected = 5,  ///< The run began without it, as `--only` chose others. Resuming runs it.
  NotNeeded = 6,    ///< It was to run only if something that it needs failed, and nothing did.
};

/// "OUT_OF_MEMORY", ...; "FINISHED", ...
std::string_view to_text(Failure failure);
std::string_view to_text(Verdict verdict);

/// Added to the number of a signal, it is the exit code that a shell shows for it.
constexpr int kSignalCode = 128;

/// "SIGKILL"; "signal 70" for those without a name.
std::string signal_name(int signal);

/// "segmentation fault" for SIGSEGV; empty for a signal that is not of a crash.
std::string_view crash_meaning(int signal);

/// Whether the picture in trainyard/status.h has an arrow from `from` to `to`.
bool may_follow(Status from, Status to);

/// The word a person reads for a task, in the progress line, the table and the report: "WAITING",
/// "ON_HOLD", "RUNNING", "RETRYING", "FINISHED", "SKIPPED", "STOPPED", "NOT_SELECTED",
/// "NOT_NEEDED", "OUT_OF_MEMORY", "TIMEOUT", "KILLED", "SIGSEGV", "EXIT 3", "CANNOT_START", "LOST".
/// The caller says FAILED before the latter where it is not clear.
struct Standing {
  Status status = Status::Init;
  Verdict verdict = Verdict::None;
  Failure failure = Failure::None;
  int exit_code = 0;     ///< For Failure::Crashed kSignalCode and the signal.
  bool on_hold = false;  ///< It waits until somebody releases it.
};
std::string word_for(const Standing& standing);

/// The action of a user that helps a failed task.
enum class Cure : std::uint8_t {
  RunAgain,    ///< `trainyard run --resume`, without any change.
  MoreMemory,  ///< `trainyard retry --memory` or `--gpu-memory`.
  MoreTime,    ///< `trainyard retry --time-limit`.
  Fix,         ///< Of the program or the machine, then `trainyard run --resume`.
};

/// A way in which tasks end. The table of all in docs/troubleshooting.md explains them.
struct TaskEnd {
  std::string_view id;  ///< "out-of-memory", in JSON and to select tasks. It never changes.
  Verdict verdict = Verdict::None;
  Failure failure = Failure::None;  ///< Of a failed task.
  std::string_view word;            ///< "OUT_OF_MEMORY"
  /// The word for people where it contains the exit code: "EXIT 3", "SIGSEGV".
  std::string (*text)(int exit_code) = nullptr;
  Cure cure = Cure::RunAgain;  ///< Of a failed task.
};

/// The list of all ends.
std::span<const TaskEnd> all_ends();

/// Null for a task that has not ended.
const TaskEnd* end_of(const Standing& standing);

}  // namespace trainyard::model

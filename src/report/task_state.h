// The words for choosing tasks by their status: `trainyard logs 46 :failed`. Pure; any thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "model/status.h"

namespace trainyard::report {

/// Each is one word that people read for tasks (model/status.h), or several of these.
enum class TaskState : std::uint8_t {
  Waiting,
  OnHold,
  Running,
  Retrying,
  Finished,
  Failed,  ///< For whatever cause, from OutOfMemory to Error.
  OutOfMemory,
  Timeout,
  Killed,
  Crashed,
  Exit,  ///< By itself, with a code other than 0.
  CannotStart,
  Lost,
  Error,
  Skipped,
  Stopped,
  NotSelected,
  NotNeeded,
  Ended,       ///< Has its verdict.
  Unfinished,  ///< Has not finished, for whatever cause.
};

/// "failed", "oom", "out-of-memory", ...: in small or large letters, with - or _. An error names
/// the nearest word, or all, with what the user types before a word: ":", "status=".
Result<TaskState> read_task_state(std::string_view word, std::string_view before = ":");

/// "failed", "oom", ...: the first word of a state.
std::string_view task_state_word(TaskState state);

bool is_in(const model::Standing& standing, TaskState state);

}  // namespace trainyard::report

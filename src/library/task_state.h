// The state of a task of the library, next to its user's code. In the program it is the state that
// the yard has seen; in the process of the task it has the connection to the yard.
#pragma once

#include <cstdint>

#include "model/stage_times.h"
#include "model/status.h"
#include "trainyard/task.h"

namespace trainyard::library {
class TaskProcess;

TaskOutcome outcome_of(model::Verdict verdict, model::Failure failure);
}  // namespace trainyard::library

namespace trainyard {

struct TaskState {
  TaskOptions options;
  std::string task_dir;
  Status status = Status::Init;
  TaskOutcome outcome = TaskOutcome::None;
  int exit_code = 0;
  bool kept = false;
  std::uint64_t run_by = 0;  ///< The last yard that has run it, which runs it no more.
  model::StageTimes times;
  std::string result;  ///< A JSON object as text, or empty.
  std::string message;
  std::string traceback;
  std::optional<Stage> failed_in;
  library::TaskProcess* process = nullptr;  ///< In the process of the task alone.
};

/// Opens a task for the yard.
class TaskAccess {
 public:
  static TaskState& state(Task& task) { return *task.state_; }
};

}  // namespace trainyard

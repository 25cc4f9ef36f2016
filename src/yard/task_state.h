// What a task of the library is beside its user's code. In the program it is what the yard has seen
// of it; in the process of the task it holds the way to the yard.
#pragma once

#include <optional>
#include <string>

#include "model/stage_times.h"
#include "trainyard/status.h"
#include "trainyard/task.h"

namespace trainyard {

class TaskProcess;

struct TaskState {
  TaskOptions options;
  std::string task_dir;
  Status status = Status::Init;
  StageTimes times;
  std::string result;  ///< A JSON object as text, or empty.
  std::string message;
  std::string traceback;
  std::optional<Stage> failed_in;
  TaskProcess* process = nullptr;  ///< In the process of the task alone.
};

/// Opens a task for the yard.
class TaskAccess {
 public:
  static TaskState& state(Task& task) { return *task.state_; }
};

}  // namespace trainyard

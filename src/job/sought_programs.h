// The programs that the tasks of a job are to run, to check beforehand whether a machine has them:
// Job::programs().
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "model/ids.h"
#include "wire/agent.h"

namespace trainyard::job {

/// A script that an interpreter is to read.
struct ScriptOfTasks {
  std::string name;         ///< As in the command, relative to the task's directory: "train.py".
  std::string first_task;   ///< A task that runs it, for people.
  bool comes_later = true;  ///< All its tasks wait for others, which may make it.
  std::size_t tasks = 0;    ///< The number of tasks that run it, of the first 200 of each group.

  friend bool operator==(const ScriptOfTasks&, const ScriptOfTasks&) = default;
};

struct ProgramOfTasks {
  wire::SoughtProgram program;
  std::vector<model::ShapeIndex> shapes;  ///< The shapes of the tasks that run it.
  std::string first_task;                 ///< A task that runs it, for people: "train/lr=0.1".
  /// Each of them waits for others, which may be what makes it.
  bool comes_later = true;
  /// The scripts that are known beforehand, where the program is an interpreter.
  std::vector<ScriptOfTasks> scripts = {};

  friend bool operator==(const ProgramOfTasks&, const ProgramOfTasks&) = default;
};

}  // namespace trainyard::job

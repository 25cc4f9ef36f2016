// What programs the tasks of a job are to run, for whoever looks beforehand whether a machine has
// them: Job::programs().
#pragma once

#include <string>
#include <vector>

#include "model/ids.h"
#include "wire/agent.h"

namespace trainyard::job {

struct ProgramOfTasks {
  wire::SoughtProgram program;
  std::vector<model::ShapeIndex> shapes;  ///< Of the tasks that run it.
  std::string first_task;                 ///< One of them, for people: "train/lr=0.1".
  /// Each of them waits for others, which may be what makes it.
  bool comes_later = true;

  friend bool operator==(const ProgramOfTasks&, const ProgramOfTasks&) = default;
};

}  // namespace trainyard::job

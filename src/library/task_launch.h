// The launch of an attempt of a task of the library: a fork of the program, in its own directory,
// with the environment variables of a task of a job file.
#pragma once

#include <cstdint>
#include <string>

#include "model/launch.h"
#include "model/plan.h"
#include "model/resources.h"
#include "trainyard/task.h"
#include "trainyard/task_group.h"

namespace trainyard::library {

struct Launched {
  Task& task;
  const TaskGroup& group;
  const std::string& run_directory;
  std::string task_directory;  ///< Absolute.
  const model::Shape& shape;
  const model::Capacity& capacity;
  bool gpus_answer = true;  ///< All its GPUs answered when they were last sampled.
};

model::Launch launch_of(const Launched& what, std::uint32_t attempt);

}  // namespace trainyard::library

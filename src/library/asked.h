// The options of a task and of its group, read by the rules of a job file's keys.
#pragma once

#include "base/result.h"
#include "job/task_keys.h"
#include "trainyard/task_options.h"

namespace trainyard::library {

struct AskedOfTask {
  job::Asked asked;
  /// The task itself names a device, and only its group says anything else of GPUs.
  bool device_goes_first = false;
};

/// The task's word counts over its group's. An error names the option: "retries: ...".
Result<AskedOfTask> asked_of(const TaskOptions& own, const TaskOptions& group);

}  // namespace trainyard::library

// One group of tasks from its first start to its last end: the plan made of its tasks, the parts
// put together, and what comes out brought back to the tasks.
//
// One thread. Forks in its run().
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/configuration.h"
#include "report/write_reports.h"
#include "trainyard/task.h"
#include "trainyard/task_group.h"
#include "trainyard/yard.h"
#include "wire/task.h"

namespace trainyard {

struct GroupRunOptions {
  std::string name;       ///< Of the run, for people.
  std::string directory;  ///< Of this group; is made.
  bool beside_threads = false;
  std::function<void(std::string_view)> note;
  /// What its report says of the group, once it is written.
  std::function<void(const report::Overview&)> on_report;
  /// What the task of this id has sent.
  std::function<void(const std::string&, const wire::Message&)> on_message;
};

/// Runs `tasks`, which are those of `group`. An error says why it could not.
Result<RunSummary> run_group(const TaskGroup& group, const std::vector<Task*>& tasks,
                             const Configuration& configuration, const GroupRunOptions& options);

}  // namespace trainyard

// Finds what a job file says of GPUs in vain: how a GPU is shared where none is asked for, or where
// those that are asked for are nobody else's; and no GPU beside memory of one.
//
// A key counts for all tasks that it is written for: one that a group hands down, or several groups
// by an anchor, is right when it means something to one of them. Pure.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "job/job_spec.h"
#include "job/task_keys.h"
#include "model/terms.h"
#include "text/yaml_reader.h"

namespace trainyard::job {

class GpuKeys {
 public:
  struct Mistake {
    text::Place place;
    const GroupSpec* group = nullptr;
    std::string message;
  };

  /// What one combination of a task asks for, and what came of it. The group has to stay.
  void see(const GroupSpec& group, const TaskSpec& task, const Asked& asked,
           const model::Terms& terms);

  /// The mistakes in the tasks that were passed to see(), in the order of their places.
  [[nodiscard]] std::vector<Mistake> mistakes() const;

 private:
  struct Seen {
    const GroupSpec* group = nullptr;  ///< The first that says it.
    bool of_use = false;
    bool on_gpu = false;  ///< Somebody for whom it is written has a GPU.
  };
  using Key = std::tuple<int, int, TaskKey>;  ///< Line, column.

  std::map<Key, Seen> seen_;
};

}  // namespace trainyard::job

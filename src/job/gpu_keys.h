// Finds GPU keys of a job file that have no effect: keys for sharing a GPU where no GPU is
// requested or the requested GPUs are not shared; and an amount of GPU memory without a GPU.
//
// A key counts for all tasks that it is written for: a key that a group hands down, or that several
// groups share by an anchor, is right if it has a meaning for one of them. Pure.
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

  /// Takes the request of one combination of a task, and the terms that resulted. The group must
  /// outlive this.
  void see(const GroupSpec& group, const TaskSpec& task, const Asked& asked,
           const model::Terms& terms);

  /// The mistakes in the tasks that were passed to see(), in the order of their places.
  [[nodiscard]] std::vector<Mistake> mistakes() const;

 private:
  struct Seen {
    const GroupSpec* group = nullptr;  ///< The first group that has the key.
    bool of_use = false;
    bool on_gpu = false;  ///< A task that it is written for has a GPU.
  };
  using Key = std::tuple<int, int, TaskKey>;  ///< Line, column.

  std::map<Key, Seen> seen_;
};

}  // namespace trainyard::job

// The tasks of other runs in which a run was started, or is waited for: the task that started it,
// the task in which the run of that task was started, and so on. They hold what they have reserved
// until the run has ended, so a task of the run that needs some of that would wait for ever. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "model/plan.h"
#include "model/resources.h"

namespace trainyard::schedule {

struct OuterTask {
  std::string name;  ///< "outer/a of run 46", for messages.
  model::Cpus cpus;
  Bytes memory;
  std::vector<std::string> gpus;  ///< By label, as model::is_called() knows them.
  Bytes gpu_memory;               ///< On each of them; 0: they are its own.
};

/// Names the first group of the plan whose tasks fit on a machine with this capacity, and not next
/// to all outer tasks: "group 'train' would wait for ever: ..." Nothing when all fit.
std::optional<std::string> waits_for_outer_tasks(const model::Plan& plan,
                                                 const model::Policy& policy,
                                                 const model::Capacity& capacity,
                                                 std::span<const OuterTask> outer);

}  // namespace trainyard::schedule

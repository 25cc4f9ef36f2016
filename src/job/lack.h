// A request of a task that the machine cannot meet, and the key of that request. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "job/task_keys.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/terms.h"
#include "schedule/scheduler.h"

namespace trainyard::job {

struct Lack {
  TaskKey key;      ///< The key that the text is about.
  std::string why;  ///< "needs 64 GB of memory, this machine has 22 GB available"
};

/// The machines on which a task may run, and the policy.
struct LackBasis {
  const model::Policy& policy;
  const model::Capacity& capacity;                   ///< Most of everything.
  const std::vector<model::NamedMachine>& machines;  ///< None: `capacity`, whatever it is called.
  schedule::MachineText here = {};                   ///< See schedule::fits_nowhere().
};

/// Nothing where it can run.
std::optional<Lack> find_lack(const model::Request& request, const LackBasis& basis);

/// The minimum amounts for a task's retry; 0: the amount it had.
struct RetryAmounts {
  Bytes memory;
  Bytes gpu_memory;  ///< On each of its GPUs; without effect where it uses none.
};

/// The reason why a task with these terms can never start with these larger amounts. Nothing if it
/// can, or if it would have no more than before.
std::optional<Lack> find_lack_of_retry(const model::Terms& terms, const RetryAmounts& amounts,
                                       const LackBasis& basis);

}  // namespace trainyard::job

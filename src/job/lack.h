// What a task asks for that there is not, and which of its keys says so. Pure.
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
  TaskKey key;      ///< At which it is told; of GPUs it is their memory.
  std::string why;  ///< "needs 64 GB of memory, this machine has 22 GB available"
};

/// Where a task may run.
struct LackBasis {
  const model::Policy& policy;
  const model::Capacity& capacity;                   ///< Most of everything.
  const std::vector<model::NamedMachine>& machines;  ///< None: `capacity`, whatever it is called.
  std::string_view here = schedule::kThisMachine;    ///< As in schedule::fits_nowhere().
};

/// Nothing where it can run.
std::optional<Lack> find_lack(const model::Request& request, const LackBasis& basis);

/// What a task is to have at least when it is retried; 0: what it had.
struct RetryAmounts {
  Bytes memory;
  Bytes gpu_memory;  ///< On each of its GPUs; without effect where it uses none.
};

/// Why a task with these terms can never start with so much more. Nothing where it can, and where
/// it would have no more than before.
std::optional<Lack> find_lack_of_retry(const model::Terms& terms, const RetryAmounts& amounts,
                                       const LackBasis& basis);

}  // namespace trainyard::job

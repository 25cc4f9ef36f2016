// The part of the made-up machine that plays who uses the yard there: they add batches, and ask for
// the end of tasks and for another try of them.
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "base/bytes.h"
#include "base/time.h"
#include "model/event.h"
#include "model/ids.h"
#include "sim/faults.h"
#include "sim/machine.h"
#include "sim/workload.h"

namespace trainyard::sim {

void MadeUpMachine::add_batch() {
  const Addition& addition = workload_.additions[added_++];
  if (added_ > 1) world_.counts.count(Fault::LateBatch);
  tell(model::BatchAdded{.number = static_cast<std::uint32_t>(added_), .plan = addition.plan});
}

void MadeUpMachine::ask_to_kill(const Trouble& trouble) {
  const auto tasks = static_cast<std::uint32_t>(workload_.plan.tasks.size());
  model::TaskIndex task{static_cast<std::uint32_t>(random_.below(tasks + (tasks / 4)))};
  if (!processes_.empty() && trouble.memory.count % 3 == 0) {
    task =
        std::next(processes_.begin(), static_cast<std::ptrdiff_t>(random_.below(processes_.size())))
            ->first;
  }
  tell(model::KillAsked{.task = task, .request = next_request_++});
  if (random_.one_in(6)) tell(model::KillAsked{.task = task, .request = next_request_++});
  // Another one is kept from starting for a while, or is to go before or after the others.
  const model::TaskIndex other{static_cast<std::uint32_t>(random_.below(tasks))};
  if (random_.one_in(2)) {
    tell(model::HoldAsked{.task = other, .request = next_request_++});
    at(now() + Duration{random_.between(0, 30'000)}, [this, other] {
      tell(model::HoldAsked{.task = other, .request = next_request_++, .hold = false});
    });
  } else {
    tell(model::PriorityAsked{.task = other,
                              .request = next_request_++,
                              .priority = static_cast<int>(random_.between(-2, 2))});
  }
  if (random_.one_in(2)) return;
  // The user who asked for its end wants it after all, some time later.
  const Duration later{random_.one_in(4) ? 0 : random_.between(1, 40'000)};
  at(now() + later, [this, task] { ask_to_retry(task); });
}

void MadeUpMachine::ask_to_retry(model::TaskIndex task) {
  model::RetryAsked asked{.task = task, .request = next_request_++};
  if (random_.one_in(3)) asked.memory = Bytes{random_.between(1, 2048) << 20};
  if (random_.one_in(3)) asked.gpu_memory = Bytes{random_.between(1, 8192) << 20};
  if (random_.one_in(4)) asked.time_limit = Duration{random_.between(1, 60'000)};
  tell(asked);
}

}  // namespace trainyard::sim

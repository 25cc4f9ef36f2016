// The part of the scheduler that acts when memory is taken beyond what was promised, or runs short.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/time.h"
#include "model/command.h"
#include "model/ids.h"
#include "model/plan.h"
#include "schedule/another_try.h"
#include "schedule/ending.h"
#include "schedule/ledger.h"
#include "schedule/scheduler.h"
#include "schedule/state.h"

namespace trainyard::schedule {

void Scheduler::State::end_those_over_their_limit(const MachineBook& book, Instant at,
                                                  model::Decision& out) {
  // The kernel has ended them before a reading could show it.
  if (policy_.kernel_keeps_limits) return;
  for (const model::TaskIndex task : book.ledger.holders()) {
    Running& running = running_.at(task);
    if (!shape_of(task).terms.memory_hard || running.cause != StopCause::None) continue;
    if (book.ledger.memory_measured_of(task) <= running.promise.memory) continue;
    stop(running, StopCause::MemoryLimit, at, out);
  }
}

Bytes Scheduler::State::memory_max_of(model::TaskIndex task, Bytes promised) const {
  return policy_.kernel_keeps_limits && shape_of(task).terms.memory_hard ? promised : Bytes{};
}

/// Interrupts one task of a machine when less is free than remain-limit.memory keeps, before the
/// kernel chooses one. One at a time: what it gives back is to be seen first.
void Scheduler::State::watch_memory(MachineBook& book, Instant at, model::Decision& out) {
  constexpr int kReadings = 2;
  const bool low = book.ledger.memory_available() < policy_.memory_remain;
  book.short_of_memory = low ? book.short_of_memory + 1 : 0;
  if (book.short_of_memory < kReadings || interrupts_ > 0) return;
  const bool one_ends = std::ranges::any_of(running_, [&book](const auto& it) {
    return it.second.site.machine == book.index && it.second.cause != StopCause::None;
  });
  if (one_ends) return;
  Running* const victim = to_be_preempted(book);
  if (victim == nullptr) return;
  book.short_of_memory = 0;
  stop(*victim, StopCause::Preempted, at, out);
}

/// The one that is most over its promise; else the youngest. Nobody is interrupted for ever.
Scheduler::State::Running* Scheduler::State::to_be_preempted(const MachineBook& book) {
  const auto over = [&book](const Running& running) {
    const Bytes has = book.ledger.memory_measured_of(running.key.task);
    return std::max(Bytes{}, has - running.promise.memory);
  };
  Running* victim = nullptr;
  for (auto& [task, running] : running_) {
    if (running.site.machine != book.index) continue;
    const bool often = tasks[task].tries.preempted >= kFaultlessTriesMax;
    if (often || running.word || !shape_of(task).terms.preemptible) continue;
    // Its end would give nothing back.
    if (book.ledger.memory_measured_of(task) == Bytes{}) continue;
    const auto rank = [&](const Running& it) { return std::pair(over(it), it.started); };
    if (victim == nullptr || rank(running) > rank(*victim)) victim = &running;
  }
  return victim;
}

}  // namespace trainyard::schedule

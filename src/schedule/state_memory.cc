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

void Scheduler::State::end_those_over_their_limit(Instant at, model::Decision& out) {
  // The kernel has ended them before a reading could show it.
  if (policy_.kernel_keeps_limits) return;
  for (auto& [task, running] : running_) {
    if (!shape_of(task).terms.memory_hard || running.cause != StopCause::None) continue;
    if (ledger_.memory_measured_of(task) <= running.promise.memory) continue;
    stop(running, StopCause::MemoryLimit, at, out);
  }
}

Bytes Scheduler::State::memory_max_of(model::TaskIndex task, Bytes promised) const {
  return policy_.kernel_keeps_limits && shape_of(task).terms.memory_hard ? promised : Bytes{};
}

/// Interrupts one task when less is free than remain-limit.memory keeps, before the kernel chooses
/// one. One at a time: what it gives back is to be seen first.
void Scheduler::State::watch_memory(Instant at, model::Decision& out) {
  constexpr int kReadings = 2;
  const bool low = ledger_.memory_available() < policy_.memory_remain;
  short_of_memory_ = low ? short_of_memory_ + 1 : 0;
  if (short_of_memory_ < kReadings || interrupts_ > 0) return;
  const bool one_ends = std::ranges::any_of(
      running_, [](const auto& it) { return it.second.cause != StopCause::None; });
  if (one_ends) return;
  Running* const victim = to_be_preempted();
  if (victim == nullptr) return;
  short_of_memory_ = 0;
  stop(*victim, StopCause::Preempted, at, out);
}

/// The one that is most over its promise; else the youngest. Nobody is interrupted for ever.
Scheduler::State::Running* Scheduler::State::to_be_preempted() {
  const auto over = [this](const Running& running) {
    const Bytes has = ledger_.memory_measured_of(running.key.task);
    return std::max(Bytes{}, has - running.promise.memory);
  };
  Running* victim = nullptr;
  for (auto& [task, running] : running_) {
    const bool often = tasks[task].tries.preempted >= kFaultlessTriesMax;
    if (often || running.word || !shape_of(task).terms.preemptible) continue;
    // Its end would give nothing back.
    if (ledger_.memory_measured_of(task) == Bytes{}) continue;
    const auto rank = [&](const Running& it) { return std::pair(over(it), it.started); };
    if (victim == nullptr || rank(running) > rank(*victim)) victim = &running;
  }
  return victim;
}

}  // namespace trainyard::schedule

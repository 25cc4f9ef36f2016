// The part of the scheduler that keeps tasks to what was reserved for them, of the host and of
// GPUs: it tells them how much they may take of a GPU that they share, ends those that exceed a
// limit, and interrupts some where the memory of a machine runs short.
#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <variant>

#include "base/bytes.h"
#include "base/time.h"
#include "model/command.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/terms.h"
#include "schedule/another_try.h"
#include "schedule/ending.h"
#include "schedule/gpu_ledger.h"
#include "schedule/gpu_room.h"
#include "schedule/ledger.h"
#include "schedule/machine_book.h"
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

/// The task that exceeds its reservation most; else the youngest. No task is interrupted for ever.
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

/// Caps the tasks that begin in this pass, once all of them have been entered.
void Scheduler::State::cap(std::size_t first_command, model::Decision& out) {
  for (std::size_t i = first_command; i < out.commands.size(); ++i) {
    const auto tell = [this](model::AttemptKey key, Bytes& most) {
      Running& running = running_.at(key.task);
      most = cap_of(running);
      running.gpu_memory_max = most;
    };
    if (auto* const start = std::get_if<model::StartAttempt>(&out.commands[i])) {
      tell(start->key, start->gpu_memory_max);
    } else if (auto* const grant = std::get_if<model::GrantDevice>(&out.commands[i])) {
      tell(grant->key, grant->gpu_memory_max);
    }
  }
}

/// A soft cap is all that is not reserved for others; a task that is alone on its GPUs may have all
/// of them.
Bytes Scheduler::State::cap_of(const Running& running) const {
  const model::GpuMemoryLimit limit = shape_of(running.key.task).terms.gpu_memory_limit;
  const Bytes promise = running.promise.gpu_memory;
  if (running.site.gpus.empty() || promise == Bytes{} || limit == model::GpuMemoryLimit::None)
    return {};
  if (limit == model::GpuMemoryLimit::Hard) return promise;
  bool alone = true;
  std::optional<Bytes> left;
  for (const model::GpuIndex gpu : running.site.gpus) {
    const GpuRoom& room = book_of(running).room_for_choice()[gpu.value];
    alone = alone && room.sharers.tasks() <= 1;
    left = std::min(left.value_or(room.free), room.free);
  }
  return alone ? Bytes{} : promise + std::max(Bytes{}, *left);
}

bool Scheduler::State::has_hard_gpu_limit(model::TaskIndex task) const {
  return shape_of(task).terms.gpu_memory_limit == model::GpuMemoryLimit::Hard;
}

void Scheduler::State::end_those_over_their_gpu_limit(const MachineBook& book, Instant at,
                                                      model::Decision& out) {
  for (const model::TaskIndex task : book.ledger.holders()) {
    Running& running = running_.at(task);
    if (!has_hard_gpu_limit(task) || running.cause != StopCause::None) continue;
    const GpuLedger& gpus = book.gpus;
    const bool over = std::ranges::any_of(
        running.site.gpus,
        [&gpus, of = task](model::GpuIndex gpu) { return gpus.excess_on(of, gpu) > Bytes{}; });
    if (!over) continue;
    running.lack = Lack::GpuMemory;
    stop(running, StopCause::GpuLimit, at, out);
  }
}

}  // namespace trainyard::schedule

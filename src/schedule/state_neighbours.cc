// The part of the scheduler that knows of the other yards on the machine: what they hold, what they
// have taken before us, and whose turn it is. And of what people want back.
#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/check.h"
#include "base/time.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/resources.h"
#include "model/status.h"
#include "model/waiting.h"
#include "schedule/ending.h"
#include "schedule/gpu_ledger.h"
#include "schedule/gpu_room.h"
#include "schedule/ledger.h"
#include "schedule/machine_book.h"
#include "schedule/neighbours.h"
#include "schedule/scheduler.h"
#include "schedule/state.h"

namespace trainyard::schedule {

void Scheduler::State::neighbours_seen(const model::NeighboursSeen& event) {
  machines_.at(event.machine.value).see(event.neighbours);
}

/// Nothing has been carried out of what is taken back here, nor written down: it leaves all books
/// as if it had never been in them.
void Scheduler::State::claim_refused(Instant at, const model::ClaimRefused& event,
                                     model::Decision& out) {
  for (const model::AttemptKey key : event.attempts) {
    const auto found = running_.find(key.task);
    const bool is_it = found != running_.end() && found->second.key == key;
    check(is_it, "only what was just decided is refused");
    if (tasks[key.task].status == Status::Available) {
      take_back_start(found->second, at, out);
    } else {
      take_back_grant(found->second, at, out);
    }
  }
  machines_.at(event.machine.value).see(event.neighbours);
}

void Scheduler::State::take_back_start(Running& running, Instant at, model::Decision& out) {
  const model::TaskIndex task = running.key.task;
  const Bytes memory = running.memory_asked;
  set_deadline(running, std::nullopt);
  set_ahead(running, false);
  MachineBook& book = book_of(running);
  book.ledger.take_back(task);
  book.start_pause.take_back(running.key);
  if (!running.site.gpus.empty()) paces_.ended(task, /*well=*/false, at);
  book.gpus.take_back(task);
  groups_.task_stopped(group_of(task));
  tasks.take_back_attempt(task, running.status_before);
  running_.erase(task);
  wait_for_room(task, memory);
  settle_reason(tasks[task].shape, out);
}

void Scheduler::State::take_back_grant(Running& running, Instant at, model::Decision& out) {
  const model::TaskIndex task = running.key.task;
  MachineBook& book = book_of(running);
  book.ledger.change(task, {.cpus = model::Cpus{} - running.promise.cpus});
  running.promise.cpus = {};
  if (std::exchange(running.gpus_by_grant, false)) {
    paces_.ended(task, /*well=*/false, at);
    book.gpus.take_back(task);
    running.site.gpus.clear();
    running.promise.gpus = 0;
    running.promise.gpu_memory = {};
    running.promise.gpu.reset();
    running.promise.largest = false;
    running.promise.listed_only = false;
    running.promise.sharing = {};
  }
  running.stage = running.stage_before;
  running.training_since.reset();
  running.gpu_memory_max = {};
  tasks.take_back_training(task);
  enter_room(running, at);
  settle_reason(tasks[task].shape, out);
}

/// The reason why a task does not start although there is room. It may be assigned other GPUs
/// later.
model::Cause Scheduler::State::lack_of_turn(const model::Request& request, MachineBook& book,
                                            GpuSet& gpus, Instant at) {
  if (book.gpus_max && !gpus.empty()) {
    const std::span<const GpuRoom> there = book.gpus.room();
    auto count = std::ranges::count_if(there, &GpuRoom::ours);
    count += std::ranges::count_if(gpus, [&](model::GpuIndex it) { return !there[it.value].ours; });
    if (std::cmp_greater(count, *book.gpus_max)) {
      // Beside those that are there already it is one GPU less.
      std::vector<GpuRoom> room(there.begin(), there.end());
      for (GpuRoom& gpu : room) gpu.present = gpu.present && gpu.ours;
      std::optional<GpuSet> beside = book.chooser.choose(room, request);
      if (!beside) return model::Cause::GpuLimit;
      gpus = std::move(*beside);
    }
  }
  return gives_way(request, book, gpus, at) ? model::Cause::GivesWay : model::Cause::None;
}

bool Scheduler::State::gives_way(const model::Request& request, MachineBook& book,
                                 const GpuSet& gpus, Instant at) {
  if (book.neighbours.all().empty()) return false;
  // A retry in the same process on the GPUs that it holds takes nothing more.
  const bool asks_for_nothing =
      request.gpus == 0 && request.cpus == model::Cpus{} && request.memory == Bytes{};
  if (asks_for_nothing) return false;
  const bool on_gpus = request.gpus > 0;
  double has = 0;
  if (on_gpus) {
    for (const auto& [task, running] : running_) {
      if (running.site.machine != book.index || running.site.gpus.empty()) continue;
      has += book.neighbours.size_of(running.promise, running.site.gpus);
    }
  } else {
    has = book.neighbours.size_of(
        {.memory = book.ledger.memory_held(), .cpus = book.ledger.cpus_promised()}, {});
  }
  return book.neighbours.gives_way({.request = request, .gpus = gpus, .has = has}, at);
}

void Scheduler::State::limits_changed(Instant at, const model::LimitsChanged& event,
                                      model::Decision& out) {
  machines_.at(event.machine.value).see(event);
  for (auto& [task, running] : running_) {
    if (running.site.machine != event.machine) continue;
    const bool is_there = std::ranges::any_of(running.site.gpus, [&](model::GpuIndex gpu) {
      return std::ranges::find(event.cleared, gpu) != event.cleared.end();
    });
    if (is_there && running.cause == StopCause::None && !running.word) {
      stop(running, StopCause::Cleared, at, out);
    }
  }
}

}  // namespace trainyard::schedule

// The part of the scheduler that knows of GPUs: what tasks ask of them, what one that ran out of
// their memory asks for next, and what becomes of tasks when a GPU is gone.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/status.h"
#include "schedule/another_try.h"
#include "schedule/ending.h"
#include "schedule/gpu_ledger.h"
#include "schedule/gpu_room.h"
#include "schedule/machine_book.h"
#include "schedule/scheduler.h"
#include "schedule/state.h"
#include "schedule/waiting_room.h"

namespace trainyard::schedule {
/// The part of a request that is about GPUs.
model::Request Scheduler::State::gpu_request_of(model::TaskIndex task) const {
  const model::Request& asked = shape_of(task).terms.request;
  model::Request request{.gpus = asked.gpus,
                         .gpu_memory = asked.gpu_memory,
                         .gpu = asked.gpu,
                         .listed_only = asked.gpus > 0 && shape_of(task).terms.two_phase,
                         .sharing = asked.sharing,
                         .where = asked.where};
  retry_requests_.apply(task, request);
  return request;
}

/// The part of a retry's request beyond its shape is our own guess. If no machine could grant so
/// much, even with all GPUs free, the task requests what it could have: it would wait for ever
/// otherwise.
model::Request Scheduler::State::within_gpus(model::Request request,
                                             model::ShapeIndex shape) const {
  // Estimates from other tasks do not apply to a task that is to have everything.
  if (request.gpus == 0 || request.largest) return request;
  request.sharing = priced(request.sharing, shape);
  request.gpu_memory = learned_gpu_memory(request.gpu_memory, shape);
  const Bytes asked = learned_gpu_memory(shapes_[shape.value].terms.request.gpu_memory, shape);
  if (request.gpu_memory > asked) {
    const Bytes most = gpu_memory_alone(request);
    request.gpu_memory = std::max(asked, std::min(request.gpu_memory, most));
  }
  return request;
}

model::Cause Scheduler::State::choose_gpus(const model::Request& request, const MachineBook& book,
                                           Instant at, GpuSet& gpus) const {
  std::size_t idle_max = 0;
  const bool shares = request.gpus > 0 && !model::wants_whole_gpus(request);
  if (policy_.gpu_strategy == model::GpuStrategy::IdleFirst && shares) {
    idle_max = book.gpus_left_of_share();
    // An idle GPU that a small task took would be missing to what needs a whole one.
    if (idle_max > 0 && (waits_for_whole_gpu(book) || book.neighbours.wait_for_whole_gpu())) {
      idle_max = 0;
    }
  }
  return book.choose_gpus(request, idle_max, at, policy_.gpu_linger_max, gpus);
}

/// True if a task waits for a whole GPU of this machine. A task whose group runs as many as it may
/// does not count: no GPU would be of use to it.
bool Scheduler::State::waits_for_whole_gpu(const MachineBook& book) const {
  const auto waits = [&](const WaitingRoom& room, std::uint32_t index) {
    const WaitingRoom::Lane& lane = room.lane(index);
    // The estimate of its kind may be less than a whole GPU.
    return !lane.tasks.empty() && book.is_where(lane.request.where) &&
           model::wants_whole_gpus(within_gpus(lane.request, lane.shape));
  };
  return std::ranges::any_of(loaded_.lanes_for_whole_gpus(),
                             [&](std::uint32_t index) {
                               return loaded_.lane(index).machine == book.index &&
                                      waits(loaded_, index);
                             }) ||
         std::ranges::any_of(waiting_.lanes_for_whole_gpus(), [&](std::uint32_t index) {
           return groups_.has_room(waiting_.lane(index).group) && waits(waiting_, index);
         });
}

/// Interrupts one task of a GPU of a machine that has more of it than was reserved, where others
/// that keep to what is theirs could not take it. One at a time: what it gives back is to be seen
/// first.
void Scheduler::State::watch_gpus(MachineBook& book, Instant at, model::Decision& out) {
  constexpr int kReadings = 2;
  for (std::uint32_t index = 0; index < book.overfull.size(); ++index) {
    int& readings = book.overfull[index];
    readings = book.gpus.is_overfull({index}) ? readings + 1 : 0;
    if (readings < kReadings || interrupts_ > 0) continue;
    Running* const victim = most_over_on(book, {index});
    if (victim == nullptr) continue;
    readings = 0;
    victim->lack = Lack::GpuMemory;
    stop(*victim, StopCause::Crowds, at, out);
  }
}

/// Nothing if its end would help no task. No task is interrupted for ever.
Scheduler::State::Running* Scheduler::State::most_over_on(const MachineBook& book,
                                                          model::GpuIndex gpu) {
  Running* victim = nullptr;
  Bytes most;
  for (auto& [task, running] : running_) {
    if (running.site.machine != book.index) continue;
    if (std::ranges::find(running.site.gpus, gpu) == running.site.gpus.end()) continue;
    if (running.cause != StopCause::None) return nullptr;
    const bool often = tasks[task].tries.preempted >= kFaultlessTriesMax;
    if (often || running.word || !shape_of(task).terms.preemptible) continue;
    const Bytes over = book.gpus.excess_on(task, gpu);
    if (over <= most || book.gpus.is_overfull(gpu, task)) continue;
    victim = &running;
    most = over;
  }
  return victim;
}

bool Scheduler::State::gpus_have_room_for_more(const Running& running, Bytes each) const {
  const Bytes more = each - running.promise.gpu_memory;
  return std::ranges::all_of(running.site.gpus, [&](model::GpuIndex gpu) {
    const GpuRoom& room = book_of(running).gpus.room()[gpu.value];
    return room.present && (more == Bytes{} || more <= room.free);
  });
}

void Scheduler::State::gpus_sampled(Instant at, const model::GpusSampled& reading,
                                    model::Decision& out) {
  MachineBook& book = machines_.at(reading.machine.value);
  const bool some_found = book.see(at, reading, policy_);
  learn_from_running(book);
  end_those_over_their_gpu_limit(book, at, out);
  watch_gpus(book, at, out);
  give_up_on_gpus(at, some_found, out);
}

std::vector<GpuRoom> Scheduler::State::left_of(const MachineBook& book, Instant at,
                                               bool& gone) const {
  const std::span<const GpuRoom> room = book.gpus.room();
  std::vector<GpuRoom> left = book.chooser.empty(room);
  for (std::size_t index = 0; index < room.size(); ++index) {
    const auto since = book.gpus.presence_of({static_cast<std::uint32_t>(index)}).gone_since();
    // The GPU may come back, or stay away.
    if (!since || at - *since < policy_.gpu_gone_max) left[index].present = true;
    if (is_unknown(book.capacity.gpus[index])) left[index].free = kUnknownGpuMemory;
    gone = gone || !left[index].present;
  }
  return left;
}

/// Ends the waiting of those that fit nowhere any more, when what they fitted on has not answered
/// for long enough, or is smaller than was hoped. A run that is resumed tries them again.
void Scheduler::State::give_up_on_gpus(Instant at, bool some_found, model::Decision& out) {
  bool gone = false;
  std::vector<std::vector<GpuRoom>> left;
  left.reserve(machines_.size());
  for (const MachineBook& book : machines_) left.push_back(left_of(book, at, gone));
  if ((!gone && !some_found) || interrupts_ > 0) return;
  const auto fits = [&](const model::Request& whole, const MachineBook& book) {
    return book.is_where(whole.where) && whole.memory <= book.memory_most(policy_) &&
           whole.cpus <= book.capacity.cpus &&
           book.chooser.choose(left[book.index.value], whole).has_value();
  };
  // Gathered first: giving up takes tasks out of the lanes that are walked here.
  std::vector<model::TaskIndex> lost;
  for (const WaitingRoom* const waiting : {&waiting_, &loaded_}) {
    for (const WaitingRoom::Head& head : waiting->order()) {
      const WaitingRoom::Lane& lane = waiting->lane(head.lane);
      const bool has_loaded = waiting == &loaded_;
      if (shapes_[lane.shape.value].terms.request.gpus == 0) continue;
      if (has_loaded && lane.request.gpus == 0) continue;
      // A task that has loaded stays on its machine. A task that has not requests its GPU later,
      // but the same.
      const bool somewhere =
          has_loaded ? fits(device_of(lane), machines_[lane.machine.value])
                     : std::ranges::any_of(machines_, [&](const MachineBook& book) {
                         const model::Request request = request_on(lane, book);
                         return fits(whole_on(head.precedence.task, request, book), book);
                       });
      if (!somewhere) lost.insert(lost.end(), lane.tasks.begin(), lane.tasks.end());
    }
  }
  const std::string_view why = gone ? kNoGpuLeft : kNoGpuFits;
  for (const model::TaskIndex task : lost) give_up_waiting(task, why, at, out);
}

void Scheduler::State::give_up_waiting(model::TaskIndex task, std::string_view why, Instant at,
                                       model::Decision& out) {
  if (const auto found = running_.find(task); found != running_.end()) {
    return end_for(found->second, StopCause::NoGpu, at, out);
  }
  // Its group may have failed fast meanwhile.
  if (tasks[task].verdict != model::Verdict::None) return;
  const model::GroupIndex group = group_of(task);
  const model::ShapeIndex shape = tasks[task].shape;
  waiting_.remove(task);
  conclude_waiting(task,
                   {.verdict = model::Verdict::Skipped,
                    .failure = model::Failure::CannotStart,
                    .message = std::string(why)},
                   out);
  leave_trial(task, out);
  settle_reason(shape, out);
  const bool failed = tasks[task].verdict == model::Verdict::Failed;
  if (failed && groups_.planned(group).fail_fast) fail_fast(group, at, out);
  close_group_if_over(group, out);
}

}  // namespace trainyard::schedule

// The part of the scheduler that knows of GPUs: what tasks ask of them, what one that ran out of
// their memory asks for next, and what becomes of tasks when a GPU is gone.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/bytes.h"
#include "base/time.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/status.h"
#include "model/waiting.h"
#include "schedule/another_try.h"
#include "schedule/ending.h"
#include "schedule/gpu_ledger.h"
#include "schedule/gpu_room.h"
#include "schedule/scheduler.h"
#include "schedule/state.h"
#include "schedule/waiting_room.h"

namespace trainyard::schedule {
/// What a task asks of GPUs, and of nothing else.
model::Request Scheduler::State::gpu_request_of(model::TaskIndex task) const {
  const model::Request& asked = shape_of(task).terms.request;
  model::Request request{.gpus = asked.gpus,
                         .gpu_memory = asked.gpu_memory,
                         .gpu = asked.gpu,
                         .listed_only = asked.gpus > 0 && shape_of(task).terms.two_phase,
                         .sharing = asked.sharing};
  const auto grown = grown_gpu_.find(task);
  if (grown != grown_gpu_.end()) {
    request.gpu_memory = grown->second.each;
    request.largest = grown->second.largest;
  }
  return request;
}

/// What a retry asks for beyond its shape is our own guess. Where nobody could have so much, even
/// with all GPUs to itself, it asks for what it could have: it would wait for ever otherwise.
model::Request Scheduler::State::within_gpus(model::Request request,
                                             model::ShapeIndex shape) const {
  // What was learned of others says nothing of one that is to have all that there is.
  if (request.gpus == 0 || request.largest) return request;
  request.sharing = priced(request.sharing, shape);
  request.gpu_memory = learned_gpu_memory(request.gpu_memory, shape);
  const Bytes asked = learned_gpu_memory(shapes_[shape.value].terms.request.gpu_memory, shape);
  if (request.gpu_memory > asked) {
    const Bytes most = chooser_.most_memory(gpus_.room_alone(), request);
    request.gpu_memory = std::max(asked, std::min(request.gpu_memory, most));
  }
  return request;
}

/// At least what it was seen to need or said that it needs; half as much again where the fault was
/// its own. The last try, and one that could have no more beside others, has its GPUs to itself.
Scheduler::State::GrownGpu Scheduler::State::grown_gpu(const Running& running, Setback setback,
                                                       const AnotherTry& next) const {
  const Bytes had = running.promise.gpu_memory;
  const auto before = grown_gpu_.find(running.key.task);
  const Bytes most_so_far =
      std::max(had, before == grown_gpu_.end() ? Bytes{} : before->second.most);
  const Bytes needed = running.needed.gpu_memory;
  const Bytes most = chooser_.most_memory(running.promise);
  const bool hard = has_hard_gpu_limit(running.key.task);
  if (setback != Setback::OutOfMemory || hard) {
    const Bytes each = hard || had == Bytes{} ? had : std::max(had, std::min(needed, most));
    return {.each = each, .largest = running.promise.largest, .most = std::max(most_so_far, each)};
  }
  if (next.number >= next.most || had == Bytes{} || had >= most) {
    return {.each = {}, .largest = true, .most = most_so_far};
  }
  const Bytes each = std::max(had, std::min(most, std::max(had + Bytes{had.count / 2}, needed)));
  return {.each = each, .largest = false, .most = std::max(most_so_far, each)};
}

/// Interrupts one task of a GPU that has more of it than was reserved, where others that keep to
/// what is theirs could not take it. One at a time: what it gives back is to be seen first.
void Scheduler::State::watch_gpus(Instant at, model::Decision& out) {
  constexpr int kReadings = 2;
  for (std::uint32_t index = 0; index < overfull_.size(); ++index) {
    int& readings = overfull_[index];
    readings = gpus_.is_overfull({index}) ? readings + 1 : 0;
    if (readings < kReadings || interrupts_ > 0) continue;
    Running* const victim = most_over_on({index});
    if (victim == nullptr) continue;
    readings = 0;
    victim->lack = Lack::GpuMemory;
    stop(*victim, StopCause::Crowds, at, out);
  }
}

/// Nothing where its end would save nobody. Nobody is interrupted for ever.
Scheduler::State::Running* Scheduler::State::most_over_on(model::GpuIndex gpu) {
  Running* victim = nullptr;
  Bytes most;
  for (auto& [task, running] : running_) {
    if (std::ranges::find(running.gpus, gpu) == running.gpus.end()) continue;
    if (running.cause != StopCause::None) return nullptr;
    const bool often = tasks[task].tries.preempted >= kFaultlessTriesMax;
    if (often || running.word || !shape_of(task).terms.preemptible) continue;
    const Bytes over = gpus_.excess_on(task, gpu);
    if (over <= most || gpus_.is_overfull(gpu, task)) continue;
    victim = &running;
    most = over;
  }
  return victim;
}

std::string Scheduler::State::names_of(const GpuSet& gpus) const {
  std::vector<std::string> names;
  for (const model::GpuIndex gpu : gpus) names.push_back(capacity_.gpus[gpu.value].label());
  return fmt::format("{} {}", names.size() == 1 ? "GPU" : "GPUs", fmt::join(names, ", "));
}

bool Scheduler::State::gpus_have_room_for_more(const Running& running, Bytes each) const {
  const Bytes more = each - running.promise.gpu_memory;
  return std::ranges::all_of(running.gpus, [&](model::GpuIndex gpu) {
    const GpuRoom& room = gpus_.room()[gpu.value];
    return room.present && (more == Bytes{} || more <= room.free);
  });
}

model::Cause Scheduler::State::lack_of_gpus(Instant at) const {
  // Torch takes so long as a rule: of that nobody need be told.
  constexpr Duration kUsual{1'000};
  const auto late = [&](const GpuLedger::Lingering& it) {
    return it.until + kUsual <= at + policy_.gpu_linger_max;
  };
  if (std::ranges::any_of(gpus_.room(), [](const GpuRoom& it) { return !it.present; })) {
    return model::Cause::GpusGone;
  }
  return std::ranges::any_of(gpus_.lingering(), late) ? model::Cause::GpusLinger
                                                      : model::Cause::Gpus;
}

void Scheduler::State::gpus_sampled(Instant at, const model::GpusSampled& reading,
                                    model::Decision& out) {
  for (const model::GpuFound& it : reading.found) {
    capacity_.gpus[it.gpu.value] = it.what;
    gpus_.learn(it.gpu, it.what.memory, memory_kept_free(policy_, it.what));
    neighbours_.learn(it.gpu, it.what);
  }
  if (!reading.found.empty()) chooser_ = GpuChooser(policy_, capacity_);
  gpus_.see(at, reading);
  neighbours_.gpus_were_read();
  gpus_.set_neighbours(neighbours_.on_cards());
  learn_from_running();
  end_those_over_their_gpu_limit(at, out);
  watch_gpus(at, out);
  give_up_on_gpus(at, !reading.found.empty(), out);
}

/// Ends the waiting of those that fit nowhere any more, when what they fitted on has not answered
/// for long enough, or is smaller than was hoped. A run that is resumed tries them again.
void Scheduler::State::give_up_on_gpus(Instant at, bool some_found, model::Decision& out) {
  const std::span<const GpuRoom> room = gpus_.room();
  bool gone = false;
  std::vector<GpuRoom> left = chooser_.empty(room);
  for (std::size_t index = 0; index < room.size(); ++index) {
    const auto since = gpus_.gone_since({static_cast<std::uint32_t>(index)});
    // It may come back, or stay.
    if (!since || at - *since < policy_.gpu_gone_max) left[index].present = true;
    if (is_unknown(capacity_.gpus[index])) left[index].free = kUnknownGpuMemory;
    gone = gone || !left[index].present;
  }
  if ((!gone && !some_found) || interrupts_ > 0) return;
  // Gathered first: giving up takes tasks out of the lanes that are walked here.
  std::vector<model::TaskIndex> lost;
  for (const WaitingRoom* const waiting : {&waiting_, &loaded_}) {
    for (const WaitingRoom::Head& head : waiting->order()) {
      const WaitingRoom::Lane& lane = waiting->lane(head.lane);
      // One that has not loaded yet asks for its GPU later, but for the same.
      const model::Request request = lane.request.gpus > 0 || waiting == &loaded_
                                         ? lane.request
                                         : gpu_request_of(head.precedence.task);
      if (request.gpus == 0 || chooser_.choose(left, within_gpus(request, lane.shape))) continue;
      lost.insert(lost.end(), lane.tasks.begin(), lane.tasks.end());
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
  conclude_waiting(task, model::Verdict::Skipped, std::string(why), out,
                   model::Failure::CannotStart);
  leave_trial(task, out);
  settle_reason(shape, out);
  const bool failed = tasks[task].verdict == model::Verdict::Failed;
  if (failed && groups_.planned(group).fail_fast) fail_fast(group, at, out);
  close_group_if_over(group, out);
}

}  // namespace trainyard::schedule

// The part of the scheduler that lets tasks begin one after the other on a GPU that is tight.
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "model/resources.h"
#include "model/waiting.h"
#include "schedule/gpu_ledger.h"
#include "schedule/gpu_room.h"
#include "schedule/scheduler.h"
#include "schedule/startup_gate.h"
#include "schedule/state.h"

namespace trainyard::schedule {

/// For those that are in their first allocation now. Before anybody is looked at in a pass.
void Scheduler::State::close_gate(Instant at) {
  gate_ = StartupGate(gpus_.room().size());
  held_.clear();
  if (policy_.gpu_settle_max == Duration{0}) return;
  for (const auto& [task, running] : running_) {
    if (running.gpus.empty() || !running.training_since || gpus_.has_settled(task)) continue;
    const Instant until = *running.training_since + policy_.gpu_settle_max;
    if (until > at) gate_.begins(running.gpus, running.promise.gpu_memory, until);
  }
}

/// What could be promised, less what is kept for those that begin soon.
std::span<const GpuRoom> Scheduler::State::room_for_choice() const {
  return held_.empty() ? gpus_.room() : std::span<const GpuRoom>(room_beside_held_);
}

/// The GPUs that a request gets: Cause::None. Or those that it gets when who is there has settled,
/// or who is to begin there before: Cause::Settling. None where it lacks room.
model::Cause Scheduler::State::choose_gpus(const model::Request& request, Instant at,
                                           GpuSet& gpus) const {
  gpus.clear();
  if (request.gpus == 0) return model::Cause::None;
  std::optional<GpuSet> chosen = chooser_.choose(gpus_.room(), request);
  if (!chosen) return lack_of_gpus(at);
  if (gate_.opens_at()) {
    const std::span<const GpuRoom> room = room_for_choice();
    std::optional<GpuSet> open = chooser_.choose(gate_.open(room, request), request);
    if (!open) {
      // None at all where what is left is kept for others.
      if (auto held = chooser_.choose(room, request)) gpus = std::move(*held);
      return model::Cause::Settling;
    }
    chosen = std::move(open);
  }
  gpus = std::move(*chosen);
  return model::Cause::None;
}

/// Younger ones do not begin in the place of one that only waits for its turn to begin.
void Scheduler::State::hold(const model::Request& request, const GpuSet& gpus) {
  const std::span<const GpuRoom> room = room_for_choice();
  std::vector<GpuRoom> beside(room.begin(), room.end());
  take(beside, request, gpus);
  room_beside_held_ = std::move(beside);
  held_.push_back({.request = request, .gpus = gpus});
  gate_opens_at_ = gate_.opens_at();
}

/// One begins on these GPUs now. What is promised has been entered.
void Scheduler::State::occupy(const model::Request& request, const GpuSet& gpus, Instant at) {
  if (gpus.empty()) return;
  if (policy_.gpu_settle_max > Duration{0}) {
    gate_.begins(gpus, request.gpu_memory, at + policy_.gpu_settle_max);
  }
  if (held_.empty()) return;
  const std::span<const GpuRoom> room = gpus_.room();
  room_beside_held_.assign(room.begin(), room.end());
  for (const Held& one : held_) take(room_beside_held_, one.request, one.gpus);
}

}  // namespace trainyard::schedule

// The part of the scheduler that says why tasks wait.
#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <variant>

#include "base/time.h"
#include "model/command.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/waiting.h"
#include "schedule/gpu_ledger.h"
#include "schedule/gpu_room.h"
#include "schedule/scheduler.h"
#include "schedule/state.h"
#include "schedule/waiting_room.h"

namespace trainyard::schedule {

void Scheduler::State::set_reason(model::ShapeIndex shape, model::Reason reason,
                                  model::Decision& out) {
  model::Reason& told = reasons_[shape.value];
  if (told == reason) return;
  told_ +=
      (reason.cause == model::Cause::None ? 0 : 1) - (told.cause == model::Cause::None ? 0 : 1);
  told = reason;
  out.changes.emplace_back(model::ReasonChanged{.shape = shape, .reason = std::move(reason)});
}

/// `gpus` are those that it waits for, where one has to settle there first.
void Scheduler::State::note_reason(const WaitingRoom::Lane& lane, model::Cause cause,
                                   const GpuSet& gpus, model::Decision& out) {
  // The oldest lane of a shape speaks for it.
  std::uint32_t& noted = noted_in_[lane.shape.value];
  if (noted == pass_) return;
  noted = pass_;
  set_reason(lane.shape, reason_for(lane, cause, gpus), out);
}

void Scheduler::State::clear_reason(model::ShapeIndex shape, model::Decision& out) {
  set_reason(shape, {}, out);
}

void Scheduler::State::settle_reason(model::ShapeIndex shape, model::Decision& out) {
  if (waits_in_a_room(shape)) return;
  const model::GroupIndex group = shapes_[shape.value].group;
  const auto trial = trials_.find(group);
  if (trial != trials_.end() && holds_any(shape)) return tell_of_trial(group, trial->second, out);
  if (not_yet_in_.contains(shape)) {
    return set_reason(
        shape, {.cause = model::Cause::NotYet, .needs = {}, .not_before = start_of(shape)}, out);
  }
  if (aside_.contains(shape)) return set_reason(shape, reason_aside(shape), out);
  if (!somebody_waits(shape)) clear_reason(shape, out);
}

void Scheduler::State::note_queued(model::Decision& out) {
  for (const WaitingRoom::Head& head : waiting_.order()) {
    const WaitingRoom::Lane& lane = waiting_.lane(head.lane);
    const model::Cause told = reasons_[lane.shape.value].cause;
    if (told == model::Cause::None || told == model::Cause::Group ||
        told == model::Cause::TriedFirst || told == model::Cause::NotYet ||
        told == model::Cause::Needs || told == model::Cause::Held)
      note_reason(lane, model::Cause::Queued, {}, out);
  }
}

model::Reason Scheduler::State::reason_for(const WaitingRoom::Lane& lane, model::Cause cause,
                                           const GpuSet& gpus) const {
  model::Reason reason{.cause = cause, .needs = {}};
  switch (cause) {
    case model::Cause::Parallel:
      reason.parallel_max = groups_.planned(lane.group).parallel_max;
      break;
    case model::Cause::Cpus:
      reason.needs.cpus = lane.request.cpus;
      break;
    case model::Cause::Memory:
      reason.needs.memory = request_of(lane).memory;
      break;
    case model::Cause::Disk:
      reason.needs.disk = lane.request.disk;
      break;
    case model::Cause::Gpus:
    case model::Cause::GpusLinger:
    case model::Cause::GpusGone:
      explain_gpus(lane, reason);
      break;
    case model::Cause::Settling:
      if (!gpus.empty()) reason.needs.gpu = gpus.front();
      break;
    case model::Cause::GivesWay:
      reason.needs.cpus = lane.request.cpus;
      reason.needs.memory = request_of(lane).memory;
      if (lane.request.gpus > 0) explain_gpus(lane, reason);
      break;
    case model::Cause::GpuLimit:
      explain_gpus(lane, reason);
      break;
    default:
      break;
  }
  return reason;
}

void Scheduler::State::explain_gpus(const WaitingRoom::Lane& lane, model::Reason& reason) const {
  const model::Request request = within_gpus(lane.request, lane.shape);
  reason.needs = {.gpus = request.gpus,
                  .gpu_memory = request.gpu_memory,
                  .gpu = request.gpu,
                  .largest = request.largest,
                  .sharing = request.sharing};
  reason.per_gpu_measured = request.sharing.max_per_gpu != lane.request.sharing.max_per_gpu;
  if (!model::wants_whole_gpus(request) || request.largest) return;
  reason.own_until_known = shapes_[lane.shape.value].terms.learns_gpu_memory;
  // What one that runs has grows with every reading: of that nobody need be told each time.
  constexpr std::int64_t kWorthTelling = 10;
  const Bytes seen = estimates_.seen(lane.shape).gpu_memory;
  const Bytes told = reasons_[lane.shape.value].gpu_memory_seen;
  const bool alike = seen >= told && seen - told < Bytes{seen.count / kWorthTelling};
  reason.gpu_memory_seen = alike ? told : seen;
}

void Scheduler::State::tell_headroom(Instant at, bool after_reading, model::Decision& out) {
  if (told_ == 0) return;
  const auto is_new = [](const model::Change& change) {
    const auto* const reason = std::get_if<model::ReasonChanged>(&change);
    return reason != nullptr && reason->reason.cause != model::Cause::None;
  };
  if (!after_reading && std::ranges::none_of(out.changes, is_new)) return;
  model::Headroom now = headroom_now(at);
  if (now == headroom_) return;
  headroom_ = now;
  out.changes.emplace_back(model::HeadroomSeen{std::move(now)});
}

model::Headroom Scheduler::State::headroom_now(Instant at) const {
  const bool by_setting = policy_.processes_max > 0 && processes_max() == policy_.processes_max;
  const bool bounded = policy_.processes_max > 0 || capacity_.processes_max > 0;
  model::Headroom room{
      // Else it would be told again for that alone.
      .at = trials_.empty() ? Instant{} : at,
      .memory_free = ledger_.memory_free(),
      .memory_held = ledger_.memory_held(),
      .memory_of_others = ledger_.memory_of_others(),
      .holders = ledger_.tasks(),
      .cpus = capacity_.cpus,
      .cpus_free = ledger_.cpus_free(),
      .cpu_holders = ledger_.tasks_with_cpus(),
      .cpu_used_by_others = ledger_.cpu_used_by_others(),
      .cpu_utilization_max = policy_.cpu_utilization_max,
      .gpu_utilization_max = chooser_.utilization_max(),
      .processes_max = bounded ? processes_max() : 0,
      .processes_reason = by_setting ? std::string() : std::string(capacity_.processes_max_reason),
      .ahead = ahead_,
      .waiting_max = policy_.waiting_max,
      .try_first_time = policy_.try_first_time,
      .gpus = {},
      .neighbours = neighbours_.all(),
      .gpus_max = gpus_max_,
      .gpus_max_until = gpus_max_until_,
      .disk_promised = ledger_.disk_promised(),
      .disk_holders = ledger_.tasks_with_disk()};
  if (ledger_.disk()) room.disk_free = ledger_.disk()->free;
  const std::span<const GpuRoom> cards = gpus_.room();
  for (std::uint32_t index = 0; index < cards.size(); ++index) {
    const GpuRoom& card = cards[index];
    room.gpus.push_back({.label = capacity_.gpus[index].label(),
                         .present = card.present,
                         .whole = card.whole,
                         .holders = card.holders,
                         .tasks = card.sharers.tasks(),
                         .utilization = card.sharers.utilization(),
                         .tasks_max = card.sharers.tasks_max(),
                         .free = card.free,
                         .of_others = gpus_.of_others({index}),
                         .lingering = {},
                         .avoided_for = gpus_.avoided_for({index}),
                         .uuid = capacity_.gpus[index].uuid,
                         .drained = gpus_.is_drained({index})});
  }
  for (const GpuLedger::Lingering& it : gpus_.lingering()) {
    room.gpus[it.gpu.value].lingering += it.seen;
  }
  return room;
}

}  // namespace trainyard::schedule

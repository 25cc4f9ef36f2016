// The part of the scheduler that says why tasks wait.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <variant>

#include "base/time.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/waiting.h"
#include "schedule/gpu_ledger.h"
#include "schedule/gpu_room.h"
#include "schedule/ledger.h"
#include "schedule/machine_book.h"
#include "schedule/scheduler.h"
#include "schedule/state.h"
#include "schedule/waiting_room.h"

namespace trainyard::schedule {

void Scheduler::State::set_reason(model::ShapeIndex shape, model::Reason reason,
                                  model::Decision& out) {
  model::Reason& reported = reasons_[shape.value];
  if (reported == reason) return;
  shapes_with_reason_ +=
      (reason.cause == model::Cause::None ? 0 : 1) - (reported.cause == model::Cause::None ? 0 : 1);
  reported = reason;
  out.changes.emplace_back(model::ReasonChanged{.shape = shape, .reason = std::move(reason)});
}

/// `site` is where it came furthest, with the GPUs that it waits for where one has to settle there
/// first.
void Scheduler::State::note_reason(const WaitingRoom::Lane& lane, model::Cause cause,
                                   const model::Site& site, model::Decision& out) {
  // The oldest lane of a shape speaks for it.
  std::uint32_t& noted = noted_in_[lane.shape.value];
  if (noted == pass_) return;
  noted = pass_;
  set_reason(lane.shape, reason_for(lane, cause, site), out);
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
  if (!somebody_waits(shape)) set_reason(shape, {}, out);
}

void Scheduler::State::note_queued(model::Decision& out) {
  for (const WaitingRoom::Head& head : waiting_.order()) {
    const WaitingRoom::Lane& lane = waiting_.lane(head.lane);
    const model::Cause last = reasons_[lane.shape.value].cause;
    if (last == model::Cause::None || last == model::Cause::Group ||
        last == model::Cause::TriedFirst || last == model::Cause::NotYet ||
        last == model::Cause::Needs || last == model::Cause::Held)
      note_reason(lane, model::Cause::Queued, {}, out);
  }
}

model::Reason Scheduler::State::reason_for(const WaitingRoom::Lane& lane, model::Cause cause,
                                           const model::Site& site) const {
  model::Reason reason{.cause = cause, .needs = {}, .machine = site.machine};
  switch (cause) {
    case model::Cause::StartsRefused:
      reason.refusal = machines_[site.machine.value].start_pause.why();
      break;
    case model::Cause::Parallel:
      reason.parallel_max = groups_.planned(lane.group).parallel_max;
      break;
    case model::Cause::OthersUseCpu:
      // Only for people: a task that lacks something else as well would wait without the limit,
      // too.
      reason.needs = {
          .memory = request_of(lane).memory, .cpus = lane.request.cpus, .disk = lane.request.disk};
      if (!groups_.has_room(lane.group)) {
        reason.parallel_max = groups_.planned(lane.group).parallel_max;
      }
      break;
    case model::Cause::Elsewhere:
      reason.needs.where = lane.request.where;
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
      if (!site.gpus.empty()) reason.needs.gpu = site.gpus.front();
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
                  .sharing = request.sharing,
                  .where = request.where};
  const bool has_loaded = running_.contains(lane.tasks.front());
  reason.needs.avoids = (has_loaded ? device_of(lane) : request_of(lane)).avoids;
  std::erase_if(reason.needs.avoids,
                [&reason](const model::GpuPlace& gpu) { return gpu.machine != reason.machine; });
  reason.per_gpu_measured = request.sharing.max_per_gpu != lane.request.sharing.max_per_gpu;
  if (!model::wants_whole_gpus(request) || request.largest) return;
  reason.own_until_known = shapes_[lane.shape.value].terms.learns_gpu_memory;
  // The memory of a running task grows with every reading, and small changes are not worth a
  // message.
  constexpr std::int64_t kWorthTelling = 10;
  const Bytes seen = estimates_.seen(lane.shape).gpu_memory;
  const Bytes last = reasons_[lane.shape.value].gpu_memory_seen;
  const bool alike = seen >= last && seen - last < Bytes{seen.count / kWorthTelling};
  reason.gpu_memory_seen = alike ? last : seen;
}

void Scheduler::State::tell_headroom(Instant at, std::optional<model::MachineIndex> was_read,
                                     model::Decision& out) {
  if (shapes_with_reason_ == 0) return;
  const auto is_new = [](const model::Change& change) {
    const auto* const reason = std::get_if<model::ReasonChanged>(&change);
    return reason != nullptr && reason->reason.cause != model::Cause::None;
  };
  const bool new_reason = std::ranges::any_of(out.changes, is_new);
  for (MachineBook& book : machines_) {
    if (!new_reason && book.index != was_read) continue;
    model::Headroom now = headroom_of(book.index, at);
    if (now == book.reported_headroom) continue;
    book.reported_headroom = now;
    out.changes.emplace_back(
        model::HeadroomSeen{.headroom = std::move(now), .machine = book.index});
  }
}

model::Headroom Scheduler::State::headroom_of(model::MachineIndex machine, Instant at) const {
  const MachineBook& book = machines_.at(machine.value);
  const Ledger& ledger = book.ledger;
  // scheduler.max-process limits the run, the operating system what may run on the machine.
  const int wanted = policy_.processes_max;
  const int possible = book.capacity.processes_max;
  const bool by_setting = wanted > 0 && (possible == 0 || wanted <= possible);
  const Bytes kept_free = ledger.memory_kept_free();
  model::Headroom room{
      // Else the time alone would be a change to report.
      .at = trials_.empty() ? Instant{} : at,
      .memory_free = ledger.memory_free(),
      .memory_held = ledger.memory_held(),
      .memory_of_others = ledger.memory_of_others(),
      .memory_kept_free = kept_free,
      .memory_kept_by =
          kept_free > policy_.memory_remain ? "utilization-limit.memory" : "remain-limit.memory",
      .holders = ledger.tasks(),
      .cpus = book.capacity.cpus,
      .cpus_free = ledger.cpus_free(),
      .cpu_holders = ledger.tasks_with_cpus(),
      .cpu_used_by_others = ledger.cpu_used_by_others(),
      .cpu_utilization_max = policy_.cpu_utilization_max,
      .gpu_utilization_max = book.chooser.utilization_max(),
      .processes_max = by_setting ? wanted : possible,
      .processes_reason =
          by_setting ? std::string() : std::string(book.capacity.processes_max_reason),
      .ahead = ahead_,
      .waiting_max = policy_.waiting_max,
      .try_first_time = policy_.try_first_time,
      .gpus = {},
      .neighbours = book.neighbours.all(),
      .gpus_max = book.gpus_max,
      .gpus_max_until = book.gpus_max_until,
      .disk_promised = ledger.disk_promised(),
      .disk_holders = ledger.tasks_with_disk()};
  if (const std::optional<model::DiskRoom>& disk = ledger.disk()) room.disk_free = disk->free;
  const std::span<const GpuRoom> cards = book.gpus.room();
  for (std::uint32_t index = 0; index < cards.size(); ++index) {
    const GpuRoom& card = cards[index];
    room.gpus.push_back({.label = book.capacity.gpus[index].label(),
                         .present = card.present,
                         .whole = card.whole,
                         .holders = card.holders,
                         .tasks = card.sharers.tasks(),
                         .utilization = card.sharers.utilization(),
                         .tasks_max = card.sharers.tasks_max(),
                         .free = card.free,
                         .of_others = book.gpus.of_others({index}),
                         .lingering = {},
                         .avoided_for = book.gpus.avoided_for({index}),
                         .uuid = book.capacity.gpus[index].uuid,
                         .drained = book.gpus.is_drained({index}),
                         .name = book.capacity.gpus[index].name,
                         .last_resort = book.gpus.presence_of({index}).is_last_resort()});
  }
  for (const GpuLedger::Lingering& it : book.gpus.lingering()) {
    room.gpus[it.gpu.value].lingering += it.seen;
  }
  return room;
}

}  // namespace trainyard::schedule

#include "schedule/scheduler.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "base/match.h"
#include "model/ids.h"
#include "schedule/gpu_room.h"
#include "schedule/ledger.h"
#include "schedule/state.h"

namespace trainyard::schedule {
namespace {

/// "; request at most 2"; nothing where no smaller number of GPUs fits either.
std::string fewer_gpus(const GpuChooser& chooser, const std::vector<GpuRoom>& room,
                       model::Request request) {
  request.gpus = std::min(request.gpus - 1, static_cast<int>(room.size()));
  for (; request.gpus > 0; --request.gpus) {
    if (chooser.choose(room, request)) return fmt::format("; request at most {}", request.gpus);
  }
  return {};
}

/// "; request at most 18.3GB (if no other process uses any)"; nothing where nothing is
/// left. `now` is what other processes leave of it, if known: "(16GB is free now)".
std::string less_memory(Bytes given, const MachineText& machine,
                        std::optional<Bytes> now = std::nullopt) {
  if (given <= Bytes{}) return {};
  if (now && *now > Bytes{} && *now < given) {
    return fmt::format("; request at most {} ({} is free now)", text_at_most(given),
                       text_at_most(*now));
  }
  return fmt::format("; request at most {}{}", text_at_most(given),
                     machine.is_planned ? "" : " (if no other process uses any)");
}

std::optional<Misfit> never_fits_gpus(const model::Request& request, const model::Policy& policy,
                                      model::Capacity capacity, const MachineText& machine) {
  for (model::Gpu& gpu : capacity.gpus) {
    if (is_unknown(gpu)) gpu.memory = kUnknownGpuMemory;
  }
  const std::size_t there = capacity.gpus.size();
  if (there == 0) {
    return Misfit{
        .part = RequestPart::Gpus,
        .why = fmt::format(
            "needs {}, {} has none{}",
            request.gpus > 1 ? fmt::format("{} GPUs", request.gpus) : "a GPU", machine.name,
            capacity.no_gpus_reason.empty() ? "" : fmt::format(" ({})", capacity.no_gpus_reason))};
  }
  if (request.gpu && request.gpu->value >= there) {
    return Misfit{
        .part = RequestPart::Device,
        .why = fmt::format("needs 'cuda:{}', {} has {} ('cuda:0' to 'cuda:{}')", request.gpu->value,
                           machine.name, there == 1 ? "1 GPU" : fmt::format("{} GPUs", there),
                           there - 1)};
  }
  const GpuChooser chooser(policy, capacity);
  const std::vector<GpuRoom> room = chooser.empty(std::vector<GpuRoom>(there));
  if (chooser.choose(room, request)) return std::nullopt;
  const std::size_t right =
      chooser.count_for({.gpus = 1, .listed_only = request.listed_only, .where = request.where});
  if (!request.where.gpu.empty() && std::cmp_greater(request.gpus, right)) {
    return Misfit{.part = right == 0 ? RequestPart::Where : RequestPart::Gpus,
                  .why = fmt::format(
                      "needs {} named '{}', {} has {}{}",
                      request.gpus == 1 ? "a GPU" : fmt::format("{} GPUs", request.gpus),
                      request.where.gpu, machine.name, right == 0 ? "none" : std::to_string(right),
                      fewer_gpus(chooser, room, request))};
  }
  if (std::cmp_greater(request.gpus, there)) {
    return Misfit{.part = RequestPart::Gpus,
                  .why = fmt::format("needs {} GPUs, {} has {}{}", request.gpus, machine.name,
                                     there, fewer_gpus(chooser, room, request))};
  }
  model::Request one = request;
  one.gpus = 1;
  if (request.gpus > 1 && chooser.choose(room, one)) {
    return Misfit{
        .part = RequestPart::Gpus,
        .why = fmt::format(
            "needs {}, but {} does not have enough GPUs of that size that can be combined (a MIG "
            "instance cannot){}",
            model::gpu_promise_text(request), machine.name, fewer_gpus(chooser, room, request))};
  }
  if (model::wants_whole_gpus(request)) {
    return Misfit{
        .part = RequestPart::Gpus,
        .why = fmt::format(
            "needs {}, but remain-limit.cuda-memory leaves no memory on one; lower that limit",
            model::gpu_promise_text(one))};
  }
  const Bytes given = request.gpu ? room[request.gpu->value].free : chooser.most_memory(one);
  return Misfit{.part = RequestPart::GpuMemory,
                .why = fmt::format(
                    "needs {} of memory on a GPU, {} has {} available after what is kept free{}",
                    to_text(request.gpu_memory, given),
                    request.gpu ? "the requested GPU" : "the largest here",
                    to_text(given, request.gpu_memory), less_memory(given, machine))};
}

/// Why a task that learns at its start which GPUs exist cannot have those that are late.
std::string without_late(const model::Capacity& capacity) {
  std::string labels;
  for (const model::Gpu& gpu : capacity.gpus) {
    if (gpu.late) labels += (labels.empty() ? "" : ", ") + gpu.label();
  }
  if (labels.empty()) return "";
  const bool one = !labels.contains(',');
  return fmt::format(
      "; GPU{} {} {} not respond, and a two-phase task can use only GPUs that respond when it "
      "starts",
      one ? "" : "s", labels, one ? "does" : "do");
}

/// The machine that was read.
std::optional<model::MachineIndex> was_read(const model::What& what) {
  if (const auto* const host = std::get_if<model::Sampled>(&what)) return host->machine;
  if (const auto* const gpus = std::get_if<model::GpusSampled>(&what)) return gpus->machine;
  return std::nullopt;
}

}  // namespace

Scheduler::Scheduler(const model::Policy& policy) : state_(std::make_unique<State>(policy)) {}
Scheduler::~Scheduler() = default;
Scheduler::Scheduler(Scheduler&&) noexcept = default;
Scheduler& Scheduler::operator=(Scheduler&&) noexcept = default;

model::Decision Scheduler::on(const model::Event& event) {
  model::Decision out;
  // Only an event that gives something back, or requests something, is a reason to look for tasks
  // to start. A task that has lived long enough by now has done so, whatever its end since.
  const bool lived = state_->end_long_trials(event.at, out);
  bool look = true;
  match(
      event.what,
      [&](const model::MachineJoined& it) {
        state_->machine_joined(event.at, it);
        look = lived;
      },
      [&](const model::MachineGone& it) { state_->machine_gone(it); },
      [&](const model::AttemptStarted& it) { look = state_->started(event.at, it, out) || lived; },
      [&](const model::StageReported& it) { state_->reported(event.at, it, out); },
      [&](const model::AttemptEnded& it) { state_->ended(event.at, it, out); },
      [&](const model::Sampled& it) { state_->sampled(event.at, it, out); },
      [&](const model::GpusSampled& it) { state_->gpus_sampled(event.at, it, out); },
      [&](const model::KeeperSilent& it) { state_->keeper_silent(it); },
      [&](const model::InterruptAsked& it) { state_->interrupted(event.at, it, out); },
      [&](const model::KillAsked& it) { state_->kill_asked(event.at, it, out); },
      [&](const model::RetryAsked& it) { state_->retry_asked(it, out); },
      [&](const model::HoldAsked& it) { state_->hold_asked(it, out); },
      [&](const model::PriorityAsked& it) { state_->priority_asked(it, out); },
      [&](const model::BatchAdded& it) {
        // The first one began with the run, also where that was an execution before this one.
        state_->batch_added(*it.plan, it.number == 1 ? Instant{} : event.at, out);
      },
      [&](const model::Progressed& it) { state_->progressed(event.at, it, out); },
      [&](const model::NeighboursSeen& it) { state_->neighbours_seen(it); },
      [&](const model::ClaimRefused& it) {
        state_->claim_refused(event.at, it, out);
        look = !it.no_more;
      },
      [&](const model::LimitsChanged& it) { state_->limits_changed(event.at, it, out); },
      [&](const model::AttemptFound& it) {
        state_->attempt_found(event.at, it, out);
        look = !it.more_follow;
      },
      // This event is for the journal alone.
      [&](const model::CodeFound&) { look = lived; }, [&](const model::TimePassed&) {});
  // Every event brings the time. Actions that are due by now come before anything starts: they may
  // give back room.
  state_->end_overdue(event.at, out);
  state_->end_before_machines(event.at, out);
  state_->let_go(event.at);
  if (state_->settle_needs(event.at, out)) look = true;
  if (state_->come_back(event.at)) look = true;
  state_->tell_prices(out);
  const auto* const batch = std::get_if<model::BatchAdded>(&event.what);
  if (batch != nullptr && batch->more_follow) look = false;
  const auto* const gpus = std::get_if<model::GpusSampled>(&event.what);
  if (gpus != nullptr && gpus->ends_follow) look = false;
  if (look) {
    do {
      state_->start_what_fits(event.at, out);
      // A task that finds nothing left to run on may be one that others wait for.
    } while (state_->settle_needs(event.at, out));
  }
  state_->tell_of_trials(out);
  state_->tell_headroom(event.at, was_read(event.what), out);
  return out;
}

std::optional<Instant> Scheduler::wakeup() const { return state_->wakeup(); }

bool Scheduler::idle() const { return state_->tasks.open() == 0; }

model::Headroom Scheduler::headroom(model::MachineIndex machine, Instant at) const {
  return state_->headroom_of(machine, at);
}

bool Scheduler::is_of_use(model::MachineIndex machine, Instant at) const {
  return state_->is_of_use(machine, at);
}

const std::string& Scheduler::refused_by_machine() const { return state_->refused_by_machine(); }

std::size_t Scheduler::count_waiting() const { return state_->count_waiting(); }

std::optional<Misfit> never_fits(const model::Request& request, const model::Policy& policy,
                                 const model::Capacity& capacity, const MachineText& machine) {
  const Bytes kept = memory_kept_free(policy, capacity);
  if (request.memory > capacity.memory - kept) {
    const Bytes given = capacity.memory - kept;
    std::optional<Bytes> now;
    if (machine.memory_now) now = *machine.memory_now - kept;
    return Misfit{.part = RequestPart::Memory,
                  .why = fmt::format(
                      "needs {} of memory, {} has {} available ({} less {} kept free){}",
                      to_text(request.memory, given), machine.name, to_text(given, request.memory),
                      to_text(capacity.memory), to_text(kept), less_memory(given, machine, now))};
  }
  if (request.cpus > capacity.cpus) {
    const double cpus = model::as_number(request.cpus);
    const double given = model::as_number(capacity.cpus);
    return Misfit{
        .part = RequestPart::Cpus,
        .why = fmt::format("needs {} CPU{}, {} has {}{}", cpus, cpus == 1 ? "" : "s", machine.name,
                           given, given > 0 ? fmt::format("; request at most {}", given) : "")};
  }
  if (request.gpus == 0) return std::nullopt;
  std::optional<Misfit> misfit = never_fits_gpus(request, policy, capacity, machine);
  if (misfit && request.listed_only) misfit->why += without_late(capacity);
  return misfit;
}

}  // namespace trainyard::schedule

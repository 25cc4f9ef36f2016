// The part of the scheduler that starts tasks.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "model/command.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/status.h"
#include "model/waiting.h"
#include "schedule/gpu_ledger.h"
#include "schedule/gpu_room.h"
#include "schedule/scheduler.h"
#include "schedule/state.h"
#include "schedule/vacancy.h"
#include "schedule/waiting_room.h"

namespace trainyard::schedule {
namespace {

/// How many lanes that lack room are looked at in one pass. Those behind come when these have moved
/// on.
constexpr int kLookahead = 128;
/// How many lanes a pass goes by because their group runs as many as it may. It is one comparison
/// each, and it keeps a large group from standing before another that has room.
constexpr int kGlance = 16'384;

bool is_lack_of_room(model::Cause cause) {
  switch (cause) {
    case model::Cause::Cpus:
    case model::Cause::Memory:
    case model::Cause::Gpus:
    case model::Cause::GpusLinger:
    case model::Cause::GpusGone:
      return true;
    default:
      return false;
  }
}

}  // namespace

void Scheduler::State::start_what_fits(Instant at, model::Decision& out) {
  gate_opens_at_.reset();
  if (interrupts_ > 0) return;
  ++pass_;
  if (std::exchange(out_of_order_, false)) {
    put_in_order();
  } else {
    look_further();
  }
  close_gate(at);
  const std::size_t first_command = out.commands.size();
  // First those that hold memory while they wait.
  const std::optional<Blocked> loaded = train_what_fits(at, out);
  Round round{.at = at};
  GpuSet gpus;
  int looked = 0;
  int glanced = 0;
  auto it = waiting_.order().begin();
  while (it != waiting_.order().end() && looked < kLookahead && glanced < kGlance) {
    const WaitingRoom::Head head = *it;
    const WaitingRoom::Lane& lane = waiting_.lane(head.lane);
    if (loaded && !round.oldest && waiting_.precedence_of(loaded->task) < head.precedence)
      block(round, *loaded);
    model::Cause cause = obstacle(lane, round, gpus);
    if (cause == model::Cause::None) cause = lack_of_turn(request_of(lane), gpus, at);
    if (cause == model::Cause::None) {
      const Candidate started = candidate_of(lane, gpus);
      start(head.lane, gpus, at, out);
      take_room_in(round, started);
      // The lane stands for its next task now, further back; those before it stay blocked.
      it = waiting_.order().upper_bound(head);
      continue;
    }
    if (is_lack_of_room(cause) && !round.oldest) {
      block(round, {.task = head.precedence.task, .request = request_of(lane)});
    }
    if (cause == model::Cause::Ahead) {
      const bool on_gpus = shapes_[lane.shape.value].terms.request.gpus > 0;
      (on_gpus ? round.gpu_loads_wait : round.loads_wait) = true;
    }
    // Where nobody may leave some of it, others going by harms nobody.
    if (cause == model::Cause::Disk && ledger_.disk_may_come_free()) round.disk_waits = true;
    if (cause == model::Cause::Settling && !gpus.empty()) hold(request_of(lane), gpus);
    note_reason(lane, cause, gpus, out);
    ++(cause == model::Cause::Parallel ? glanced : looked);
    ++it;
  }
  // Lanes so far behind were not looked at. Those that are new say at least that they wait.
  if (fresh_lanes_ && it != waiting_.order().end()) note_queued(out);
  fresh_lanes_ = false;
  cap(first_command, out);
}

/// Lets those that have loaded train, oldest first; returns the oldest that cannot. They lack no
/// memory of the host, and give way to one another alone: an older task that has not started may
/// wait for the memory that they hold. It is protected all the same, as nothing is loaded that
/// would delay it.
std::optional<Scheduler::State::Blocked> Scheduler::State::train_what_fits(Instant at,
                                                                           model::Decision& out) {
  Round round{.at = at};
  GpuSet gpus;
  // No more are loaded ahead than the machine can train, so that all are looked at.
  auto it = loaded_.order().begin();
  while (it != loaded_.order().end()) {
    const WaitingRoom::Head head = *it;
    const WaitingRoom::Lane& lane = loaded_.lane(head.lane);
    model::Cause cause = obstacle_to_train(lane, round, gpus);
    if (cause == model::Cause::None) {
      cause = lack_of_turn(within_gpus(lane.request, lane.shape), gpus, at);
    }
    if (cause == model::Cause::None) {
      const Candidate started{.request = within_gpus(lane.request, lane.shape),
                              .gpus = gpus,
                              .takes = longest_expected(shapes_[lane.shape.value])};
      train(head.lane, gpus, at, out);
      take_room_in(round, started);
      it = loaded_.order().upper_bound(head);
      continue;
    }
    if (is_lack_of_room(cause) && !round.oldest) {
      block(round,
            {.task = head.precedence.task, .request = within_gpus(lane.request, lane.shape)});
    }
    if (cause == model::Cause::Settling && !gpus.empty()) {
      hold(within_gpus(lane.request, lane.shape), gpus);
    }
    note_reason(lane, cause, gpus, out);
    ++it;
  }
  return round.oldest;
}

void Scheduler::State::block(Round& round, const Blocked& blocked) const {
  round.oldest = blocked;
  keep_room_in(round, blocked);
}

void Scheduler::State::keep_room_in(Round& round, const Blocked& oldest) const {
  // Before that small ones may pass freely: keeping room from the start would leave the machine
  // idle whenever the oldest is a large one.
  round.owed = passed_too_often(oldest.task, round.at);
  if (round.owed) round.kept = vacancy_for(oldest.request, round.at);
}

/// One has been started, and the oldest that lacks room was passed by it.
void Scheduler::State::take_room_in(Round& round, const Candidate& started) {
  if (!round.oldest) return;
  // What is kept is reckoned once a round: reckoned anew it would count on those that were started
  // beside it, and let more and more pass.
  if (round.kept) take_beside(*round.kept, started, chooser_);
  pass(round.oldest->task, round.at);
  if (!round.owed) keep_room_in(round, *round.oldest);
}

bool Scheduler::State::waits_in_a_room(model::ShapeIndex shape) const {
  return waiting_.waiting_in(shape) + loaded_.waiting_in(shape) > 0;
}

model::Request Scheduler::State::request_to_start(model::TaskIndex task, Bytes memory) const {
  // A two-phase task gets its CPUs and GPUs when it trains.
  const Bytes disk = shape_of(task).terms.request.disk;
  if (shape_of(task).terms.two_phase) return {.memory = memory, .disk = disk};
  model::Request request = gpu_request_of(task);
  request.memory = memory;
  request.cpus = shape_of(task).terms.request.cpus;
  request.disk = disk;
  return request;
}

/// What one that is started will have taken in the end, and how long it takes.
Candidate Scheduler::State::candidate_of(const WaitingRoom::Lane& lane, const GpuSet& gpus) const {
  const model::Shape& shape = shapes_[lane.shape.value];
  Candidate candidate{.request = request_of(lane), .gpus = gpus, .takes = longest_expected(shape)};
  if (!shape.terms.two_phase) return candidate;
  const Bytes memory = candidate.request.memory;
  // Nobody knows how long one waits that has loaded, and on which GPUs it trains then.
  candidate = {.request = within_gpus(gpu_request_of(lane.tasks.front()), lane.shape),
               .gpus = {},
               .takes = {}};
  candidate.request.memory = memory;
  candidate.request.cpus = shape.terms.request.cpus;
  return candidate;
}

model::Request Scheduler::State::request_of(const WaitingRoom::Lane& lane) const {
  // What a retry asks for beyond its shape is our own guess. Where nobody could have so much, even
  // with the machine to itself, it asks for what it could have: it would wait for ever otherwise.
  model::Request request = within_gpus(lane.request, lane.shape);
  request.memory = learned_memory(request.memory, lane.shape);
  const Bytes asked = learned_memory(shapes_[lane.shape.value].terms.request.memory, lane.shape);
  if (request.memory > asked) {
    request.memory = std::max(asked, std::min(request.memory, ledger_.memory_free_alone()));
  }
  return request;
}

/// Why the head of a lane cannot be started now; the GPUs that it gets when it can.
model::Cause Scheduler::State::obstacle(const WaitingRoom::Lane& lane, const Round& round,
                                        GpuSet& gpus) const {
  // The first obstacle is the reason that people read. So these come from what holds everybody back
  // to what this lane lacks itself.
  if (keeper_silent) return model::Cause::KeeperSilent;
  if (ledger_.tasks() >= processes_max()) return model::Cause::Processes;
  const model::Shape& shape = shapes_[lane.shape.value];
  // One of a run always trains, however busy others keep the CPUs; and those on GPUs use few of
  // them.
  const bool on_cpus = shape.terms.request.gpus == 0;
  if (on_cpus && others_use_the_cpus() && one_runs_on_the_cpus()) return model::Cause::OthersUseCpu;
  if (!groups_.has_room(lane.group)) return model::Cause::Parallel;
  // One after the other: small ones do not pass a large one.
  const bool loads_wait = shape.terms.request.gpus > 0 ? round.gpu_loads_wait : round.loads_wait;
  if (shape.terms.two_phase && (loads_wait || !may_load_ahead(shape))) return model::Cause::Ahead;
  const model::Request request = request_of(lane);
  if (request.cpus > ledger_.cpus_free()) return model::Cause::Cpus;
  if (request.memory > ledger_.memory_free()) return model::Cause::Memory;
  const model::Cause lack = choose_gpus(request, round.at, gpus);
  if (is_lack_of_room(lack)) return lack;
  if (round.kept && would_delay(*round.kept, candidate_of(lane, gpus), round.at, chooser_)) {
    return model::Cause::Reserved;
  }
  const model::Cause disk = lack_of_disk(request.disk, round);
  return disk == model::Cause::None ? lack : disk;
}

/// The same for one that has loaded.
model::Cause Scheduler::State::obstacle_to_train(const WaitingRoom::Lane& lane, const Round& round,
                                                 GpuSet& gpus) const {
  const model::Request request = within_gpus(lane.request, lane.shape);
  if (request.cpus > ledger_.cpus_free()) return model::Cause::Cpus;
  const model::Cause lack = choose_gpus(request, round.at, gpus);
  if (is_lack_of_room(lack)) return lack;
  // One that tries again holds its GPUs while it waits. Whoever is owed room may wait for just
  // those.
  if (!running_.at(lane.tasks.front()).gpus.empty()) return model::Cause::None;
  const Candidate candidate{
      .request = request, .gpus = gpus, .takes = longest_expected(shapes_[lane.shape.value])};
  const bool delays = round.kept && would_delay(*round.kept, candidate, round.at, chooser_);
  return delays ? model::Cause::Reserved : lack;
}

/// Not more is loaded ahead than the CPUs could train at once, or than is good for the GPUs: it
/// would only hold memory.
bool Scheduler::State::may_load_ahead(const model::Shape& shape) const {
  if (policy_.waiting_max > 0 && ahead_ >= policy_.waiting_max) return false;
  if (shape.terms.request.gpus > 0) return ahead_on_gpus_ < ahead_max_;
  if (ahead_ == ahead_on_gpus_) return true;
  return ahead_cpus_ + shape.terms.request.cpus <= capacity_.cpus;
}

void Scheduler::State::start(std::uint32_t lane, const GpuSet& gpus, Instant at,
                             model::Decision& out) {
  const model::Request asked = waiting_.lane(lane).request;
  const model::Request request = request_of(waiting_.lane(lane));
  const model::TaskIndex task = waiting_.take_head(lane);
  const model::ShapeIndex shape = tasks[task].shape;
  const Status before = tasks[task].status;
  const model::AttemptKey key{.task = task, .attempt = tasks.begin_attempt(task)};
  enter(task, Status::Available, out);
  // The books first: what is looked at next in this pass must find less room.
  ledger_.promise(task, request);
  promise_gpus(task, gpus, request, at);
  occupy(request, gpus, at);
  groups_.task_started(group_of(task));
  Running& running = running_
                         .try_emplace(task, Running{.key = key,
                                                    .started = at,
                                                    .memory_asked = asked.memory,
                                                    .status_before = before,
                                                    .promise = request,
                                                    .gpus = gpus})
                         .first->second;
  if (shape_of(task).terms.two_phase) {
    running.stage = Stage::Load;
    set_ahead(running, true);
  } else {
    // Its process may take a moment to begin; until that is known its end is forecast from here.
    running.training_since = at;
  }
  tell_of_last_try(running, out);
  tell_learned(shape, asked, request, out);
  out.commands.emplace_back(model::StartAttempt{.key = key,
                                                .promise = request,
                                                .gpus = gpus,
                                                .memory_max = memory_max_of(task, request.memory)});
  passed_.erase(task);
  settle_reason(shape, out);
}

bool Scheduler::State::others_use_the_cpus() const {
  // A limit of all CPUs is no limit: nobody can use more.
  const double most = policy_.cpu_utilization_max;
  return most < 1 && ledger_.cpu_used_by_others() >= most;
}

bool Scheduler::State::one_runs_on_the_cpus() const {
  return std::ranges::any_of(
      running_, [this](const auto& it) { return shape_of(it.first).terms.request.gpus == 0; });
}

int Scheduler::State::processes_max() const {
  const int unlimited = std::numeric_limits<int>::max();
  const int wanted = policy_.processes_max > 0 ? policy_.processes_max : unlimited;
  const int possible = capacity_.processes_max > 0 ? capacity_.processes_max : unlimited;
  return std::min(wanted, possible);
}

void Scheduler::State::pass(model::TaskIndex task, Instant at) {
  const auto [it, first] = passed_.try_emplace(task, Passed{.times = 0, .since = at});
  ++it->second.times;
}

bool Scheduler::State::passed_too_often(model::TaskIndex task, Instant at) const {
  const auto found = passed_.find(task);
  if (found == passed_.end()) return false;
  const Passed& passed = found->second;
  return passed.times >= policy_.passes_max || at - passed.since >= passed_time_max(task);
}

/// A minute is long where tasks take seconds, and nothing where they take hours.
Duration Scheduler::State::passed_time_max(model::TaskIndex task) const {
  constexpr int kTimesUsual = 10;
  const bool known = all_durations_.count > 0;
  const Duration usual =
      known ? all_durations_.sum / all_durations_.count : shape_of(task).terms.train_expected;
  return std::max(policy_.passed_time_max, kTimesUsual * usual);
}

std::optional<Vacancy> Scheduler::State::vacancy_for(const model::Request& request,
                                                     Instant at) const {
  // What a task gives back is what it holds, which may be more than what is reserved for it.
  std::vector<Release> releases;
  releases.reserve(running_.size());
  for (const auto& [task, running] : running_) {
    releases.push_back({.at = expected_end(running, at),
                        .memory = ledger_.memory_held_by(task),
                        .cpus = running.promise.cpus,
                        .gpus = gpus_.shares_of(task)});
  }
  for (const GpuLedger::Lingering& gone : gpus_.lingering()) {
    releases.push_back(
        {.at = gone.until,
         .gpus = {{.gpu = gone.gpu, .memory = gone.memory, .whole = false, .sharing = {}}}});
  }
  const std::span<const GpuRoom> gpus = gpus_.room();
  return find_vacancy(request,
                      {.memory = ledger_.memory_free(),
                       .cpus = ledger_.cpus_free(),
                       .gpus = {gpus.begin(), gpus.end()}},
                      std::move(releases), chooser_);
}

std::optional<Duration> Scheduler::State::longest_expected(const model::Shape& shape) const {
  const Durations& known = durations_[shape.group.value];
  // The longest here and the mean in expected_end(): one that passes should be gone, on a bad day
  // too, before the room that is kept is expected to be there.
  if (known.count > 0) return known.longest;
  if (shape.terms.time_limit > Duration{0}) return shape.terms.time_limit;
  return std::nullopt;
}

std::optional<Instant> Scheduler::State::expected_end(const Running& running, Instant now) const {
  // One that waits for its device will end some day.
  if (!running.training_since) return std::nullopt;
  const Instant since = *running.training_since;
  const model::Shape& shape = shape_of(running.key.task);
  const Durations& known = durations_[shape.group.value];
  if (known.count > 0) return std::max(now, since + (known.sum / known.count));
  const Duration limit = time_limit_of(running.key.task);
  if (limit > Duration{0}) return std::max(now, since + limit);
  return std::nullopt;
}

}  // namespace trainyard::schedule

// The part of the scheduler that starts tasks.
#include <algorithm>
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
#include "schedule/forecast.h"
#include "schedule/gpu_ledger.h"
#include "schedule/gpu_room.h"
#include "schedule/scheduler.h"
#include "schedule/state.h"
#include "schedule/waiting_room.h"

namespace trainyard {
namespace {

/// How many lanes that lack room are looked at in one pass. Those behind come when these have moved
/// on.
constexpr int kLookahead = 128;
/// How many lanes a pass goes by because their group runs as many as it may. It is one comparison
/// each, and it keeps a large group from standing before another that has room.
constexpr int kGlance = 16'384;

bool is_lack_of_room(Cause cause) {
  switch (cause) {
    case Cause::Cpus:
    case Cause::Memory:
    case Cause::Gpus:
    case Cause::GpusLinger:
    case Cause::GpusGone:
      return true;
    default:
      return false;
  }
}

}  // namespace

void Scheduler::State::start_what_fits(Instant at, Decision& out) {
  if (interrupts_ > 0) return;
  ++pass_;
  if (std::exchange(out_of_order_, false)) put_in_order();
  // First those that hold memory while they wait.
  const std::optional<Blocked> loaded = train_what_fits(at, out);
  Round round{.at = at};
  GpuSet gpus;
  int looked = 0;
  int glanced = 0;
  auto it = waiting_.order().begin();
  while (it != waiting_.order().end() && looked < kLookahead && glanced < kGlance) {
    const WaitingRoom::Place place = *it;
    const WaitingRoom::Lane& lane = waiting_.lane(place.lane);
    if (loaded && !round.oldest && waiting_.turn_of(loaded->task) < place.turn)
      block(round, *loaded);
    const Cause cause = obstacle(lane, round, gpus);
    if (cause == Cause::None) {
      const Candidate started = candidate_of(lane, gpus);
      start(place.lane, gpus, at, out);
      take_room_in(round, started);
      // The lane stands for its next task now, further back; those before it stay blocked.
      it = waiting_.order().upper_bound(place);
      continue;
    }
    if (is_lack_of_room(cause) && !round.oldest) {
      block(round, {.task = place.turn.task, .request = request_of(lane)});
    }
    if (cause == Cause::Ahead) {
      const bool on_gpus = shapes_[lane.shape.value].request.gpus > 0;
      (on_gpus ? round.gpu_loads_wait : round.loads_wait) = true;
    }
    note_reason(lane, cause, out);
    ++(cause == Cause::Parallel ? glanced : looked);
    ++it;
  }
  if (fresh_lanes_ && it != waiting_.order().end()) note_queued(out);
  fresh_lanes_ = false;
}

/// Lets those that have loaded train, oldest first; returns the oldest that cannot. They lack no
/// memory of the host, and give way to one another alone: an older task that has not started may
/// wait for the memory that they hold. It is protected all the same, as nothing is loaded that
/// would delay it.
std::optional<Scheduler::State::Blocked> Scheduler::State::train_what_fits(Instant at,
                                                                           Decision& out) {
  Round round{.at = at};
  GpuSet gpus;
  // No more are loaded ahead than the machine can train, so that all are looked at.
  auto it = loaded_.order().begin();
  while (it != loaded_.order().end()) {
    const WaitingRoom::Place place = *it;
    const WaitingRoom::Lane& lane = loaded_.lane(place.lane);
    const Cause cause = obstacle_to_train(lane, round, gpus);
    if (cause == Cause::None) {
      const Candidate started{.request = within_gpus(lane.request, lane.shape),
                              .gpus = gpus,
                              .takes = longest_expected(shapes_[lane.shape.value])};
      train(place.lane, gpus, at, out);
      take_room_in(round, started);
      it = loaded_.order().upper_bound(place);
      continue;
    }
    if (is_lack_of_room(cause) && !round.oldest) {
      block(round, {.task = place.turn.task, .request = within_gpus(lane.request, lane.shape)});
    }
    note_reason(lane, cause, out);
    ++it;
  }
  return round.oldest;
}

void Scheduler::State::block(Round& round, const Blocked& blocked) const {
  round.oldest = blocked;
  keep_room_in(round, blocked);
}

void Scheduler::State::keep_room_in(Round& round, const Blocked& oldest) const {
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

bool Scheduler::State::waits_in_a_room(ShapeIndex shape) const {
  return waiting_.waiting_in(shape) + loaded_.waiting_in(shape) > 0;
}

Request Scheduler::State::request_to_start(TaskIndex task, Bytes memory) const {
  // A two-phase task gets its CPUs and GPUs when it trains.
  if (shape_of(task).two_phase) return {.memory = memory};
  Request request = gpu_request_of(task);
  request.memory = memory;
  request.cpus = shape_of(task).request.cpus;
  return request;
}

/// What one that is started will have taken in the end, and how long it takes.
Candidate Scheduler::State::candidate_of(const WaitingRoom::Lane& lane, const GpuSet& gpus) const {
  const Shape& shape = shapes_[lane.shape.value];
  Candidate candidate{.request = request_of(lane), .gpus = gpus, .takes = longest_expected(shape)};
  if (!shape.two_phase) return candidate;
  const Bytes memory = candidate.request.memory;
  // Nobody knows how long one waits that has loaded, and on which GPUs it trains then.
  candidate = {.request = within_gpus(gpu_request_of(lane.tasks.front()), lane.shape),
               .gpus = {},
               .takes = {}};
  candidate.request.memory = memory;
  candidate.request.cpus = shape.request.cpus;
  return candidate;
}

Request Scheduler::State::request_of(const WaitingRoom::Lane& lane) const {
  // What a retry asks for beyond its shape is our own guess. Where nobody could have so much, even
  // with the machine to itself, it asks for what it could have: it would wait for ever otherwise.
  Request request = within_gpus(lane.request, lane.shape);
  request.memory = learned_memory(request.memory, lane.shape);
  const Bytes asked = learned_memory(shapes_[lane.shape.value].request.memory, lane.shape);
  if (request.memory > asked) {
    request.memory = std::max(asked, std::min(request.memory, ledger_.memory_free_alone()));
  }
  return request;
}

/// Why the head of a lane cannot be started now; the GPUs that it gets when it can.
Cause Scheduler::State::obstacle(const WaitingRoom::Lane& lane, const Round& round,
                                 GpuSet& gpus) const {
  if (keeper_silent) return Cause::KeeperSilent;
  if (ledger_.tasks() >= processes_max()) return Cause::Processes;
  const Shape& shape = shapes_[lane.shape.value];
  // One of a run always trains, however busy others keep the CPUs; and those on GPUs use few of
  // them.
  const bool on_cpus = shape.request.gpus == 0;
  if (on_cpus && others_use_the_cpus() && one_runs_on_the_cpus()) return Cause::OthersUseCpu;
  if (!groups_.has_room(lane.group)) return Cause::Parallel;
  // One after the other: small ones do not pass a large one.
  const bool loads_wait = shape.request.gpus > 0 ? round.gpu_loads_wait : round.loads_wait;
  if (shape.two_phase && (loads_wait || !may_load_ahead(shape))) return Cause::Ahead;
  const Request request = request_of(lane);
  if (request.cpus > ledger_.cpus_free()) return Cause::Cpus;
  if (request.memory > ledger_.memory_free()) return Cause::Memory;
  gpus.clear();
  if (request.gpus > 0) {
    std::optional<GpuSet> chosen = chooser_.choose(gpus_.room(), request);
    if (!chosen) return lack_of_gpus(round.at);
    gpus = std::move(*chosen);
  }
  if (round.kept && would_delay(*round.kept, candidate_of(lane, gpus), round.at, chooser_)) {
    return Cause::Reserved;
  }
  return Cause::None;
}

/// The same for one that has loaded.
Cause Scheduler::State::obstacle_to_train(const WaitingRoom::Lane& lane, const Round& round,
                                          GpuSet& gpus) const {
  const Request request = within_gpus(lane.request, lane.shape);
  if (request.cpus > ledger_.cpus_free()) return Cause::Cpus;
  std::optional<GpuSet> chosen = chooser_.choose(gpus_.room(), request);
  if (!chosen) return lack_of_gpus(round.at);
  gpus = std::move(*chosen);
  // One that tries again holds its GPUs while it waits. Whoever is owed room may wait for just
  // those.
  if (!running_.at(lane.tasks.front()).gpus.empty()) return Cause::None;
  const Candidate candidate{
      .request = request, .gpus = gpus, .takes = longest_expected(shapes_[lane.shape.value])};
  const bool delays = round.kept && would_delay(*round.kept, candidate, round.at, chooser_);
  return delays ? Cause::Reserved : Cause::None;
}

/// Not more is loaded ahead than the CPUs could train at once, or than is good for the GPUs: it
/// would only hold memory.
bool Scheduler::State::may_load_ahead(const Shape& shape) const {
  if (limits_.waiting_max > 0 && ahead_ >= limits_.waiting_max) return false;
  if (shape.request.gpus > 0) return ahead_on_gpus_ < ahead_max_;
  if (ahead_ == ahead_on_gpus_) return true;
  return ahead_cpus_ + shape.request.cpus <= capacity_.cpus;
}

void Scheduler::State::start(std::uint32_t lane, const GpuSet& gpus, Instant at, Decision& out) {
  const Request request = request_of(waiting_.lane(lane));
  const TaskIndex task = waiting_.take_head(lane);
  const ShapeIndex shape = tasks[task].shape;
  const AttemptKey key{.task = task, .attempt = tasks.begin_attempt(task)};
  enter(task, Status::Available, out);
  ledger_.promise(task, request);
  gpus_.promise(task, gpus, request.gpu_memory);
  groups_.task_started(group_of(task));
  Running& running =
      running_
          .try_emplace(task, Running{.key = key, .started = at, .promise = request, .gpus = gpus})
          .first->second;
  if (shape_of(task).two_phase) {
    running.stage = Stage::Load;
    set_ahead(running, true);
  } else {
    running.training_since = at;
  }
  out.commands.emplace_back(StartAttempt{.key = key,
                                         .promise = request,
                                         .gpus = gpus,
                                         .memory_max = memory_max_of(task, request.memory)});
  passed_.erase(task);
  if (!waits_in_a_room(shape)) clear_reason(shape, out);
}

bool Scheduler::State::others_use_the_cpus() const {
  // A limit of all CPUs is no limit: nobody can use more.
  const double most = limits_.cpu_utilization_max;
  return most < 1 && ledger_.cpu_used_by_others() >= most;
}

bool Scheduler::State::one_runs_on_the_cpus() const {
  return std::ranges::any_of(
      running_, [this](const auto& it) { return shape_of(it.first).request.gpus == 0; });
}

int Scheduler::State::processes_max() const {
  const int unlimited = std::numeric_limits<int>::max();
  const int wanted = limits_.processes_max > 0 ? limits_.processes_max : unlimited;
  const int possible = capacity_.processes_max > 0 ? capacity_.processes_max : unlimited;
  return std::min(wanted, possible);
}

void Scheduler::State::pass(TaskIndex task, Instant at) {
  const auto [it, first] = passed_.try_emplace(task, Passed{.times = 0, .since = at});
  ++it->second.times;
}

bool Scheduler::State::passed_too_often(TaskIndex task, Instant at) const {
  const auto found = passed_.find(task);
  if (found == passed_.end()) return false;
  const Passed& passed = found->second;
  return passed.times >= limits_.passes_max || at - passed.since >= passed_time_max(task);
}

/// A minute is long where tasks take seconds, and nothing where they take hours.
Duration Scheduler::State::passed_time_max(TaskIndex task) const {
  constexpr int kTimesUsual = 10;
  const bool known = all_durations_.count > 0;
  const Duration usual =
      known ? all_durations_.sum / all_durations_.count : shape_of(task).train_expected;
  return std::max(limits_.passed_time_max, kTimesUsual * usual);
}

std::optional<Vacancy> Scheduler::State::vacancy_for(const Request& request, Instant at) const {
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
        {.at = gone.until, .gpus = {{.gpu = gone.gpu, .memory = gone.memory, .whole = false}}});
  }
  const std::span<const GpuRoom> gpus = gpus_.room();
  return forecast(request,
                  {.memory = ledger_.memory_free(),
                   .cpus = ledger_.cpus_free(),
                   .gpus = {gpus.begin(), gpus.end()}},
                  std::move(releases), chooser_);
}

std::optional<Duration> Scheduler::State::longest_expected(const Shape& shape) const {
  const Durations& known = durations_[shape.group.value];
  if (known.count > 0) return known.longest;
  if (shape.time_limit > Duration{0}) return shape.time_limit;
  return std::nullopt;
}

std::optional<Instant> Scheduler::State::expected_end(const Running& running, Instant now) const {
  // One that waits for its device will end some day.
  if (!running.training_since) return std::nullopt;
  const Instant since = *running.training_since;
  const Shape& shape = shape_of(running.key.task);
  const Durations& known = durations_[shape.group.value];
  if (known.count > 0) return std::max(now, since + (known.sum / known.count));
  if (shape.time_limit > Duration{0}) return std::max(now, since + shape.time_limit);
  return std::nullopt;
}

}  // namespace trainyard

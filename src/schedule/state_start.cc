// The part of the scheduler that starts tasks, and knows why the others wait.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/time.h"
#include "model/command.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/status.h"
#include "schedule/forecast.h"
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

bool is_lack_of_room(Cause cause) { return cause == Cause::Cpus || cause == Cause::Memory; }

std::string count_text(Cpus cpus) {
  return fmt::format("{}", static_cast<double>(cpus.milli) / 1000);
}

std::string cpus_text(Cpus cpus) {
  return fmt::format("{} {}", count_text(cpus), cpus == Cpus{1000} ? "CPU" : "CPUs");
}

std::string tasks_text(int count) { return count == 1 ? "1 task" : fmt::format("{} tasks", count); }

}  // namespace

void Scheduler::State::start_what_fits(Instant at, Decision& out) {
  if (interrupts_ > 0) return;
  ++pass_;
  // First those that hold memory while they wait.
  const std::optional<Blocked> loaded = train_what_fits(at, out);
  Round round{.at = at};
  int looked = 0;
  int glanced = 0;
  auto it = waiting_.order().begin();
  while (it != waiting_.order().end() && looked < kLookahead && glanced < kGlance) {
    const WaitingRoom::Place place = *it;
    const WaitingRoom::Lane& lane = waiting_.lane(place.second);
    if (loaded && !round.oldest && loaded->task < place.first) block(round, *loaded);
    const Cause cause = obstacle(lane, round);
    if (cause == Cause::None) {
      const Request whole = whole_request_of(lane);
      start(place.second, at, out);
      take_room_in(round, whole);
      // The lane stands for its next task now, further back; those before it stay blocked.
      it = waiting_.order().upper_bound(place);
      continue;
    }
    if (is_lack_of_room(cause) && !round.oldest) {
      block(round, {.task = place.first, .request = request_of(lane)});
    }
    if (cause == Cause::Ahead) round.loads_wait = true;
    note_reason(lane, cause, out);
    ++(cause == Cause::Parallel ? glanced : looked);
    ++it;
  }
  if (fresh_lanes_ && it != waiting_.order().end()) note_queued(out);
  fresh_lanes_ = false;
}

/// Lets those that have loaded train, oldest first; returns the oldest that cannot. They only lack
/// CPUs, and give way to one another alone: an older task that has not started may wait for the
/// memory that they hold. It is protected all the same, as nothing is loaded that would delay it.
std::optional<Scheduler::State::Blocked> Scheduler::State::train_what_fits(Instant at,
                                                                           Decision& out) {
  Round round{.at = at};
  // No more are loaded ahead than the machine can train, so that all are looked at.
  auto it = loaded_.order().begin();
  while (it != loaded_.order().end()) {
    const WaitingRoom::Place place = *it;
    const WaitingRoom::Lane& lane = loaded_.lane(place.second);
    const Request request = lane.request;
    const std::optional<Duration> takes = longest_expected(shapes_[lane.shape.value]);
    const bool room = request.cpus <= ledger_.cpus_free();
    if (room && !(round.kept && would_delay(*round.kept, request, at, takes))) {
      train(place.second, at, out);
      take_room_in(round, request);
      it = loaded_.order().upper_bound(place);
      continue;
    }
    if (!room && !round.oldest) block(round, {.task = place.first, .request = request});
    note_reason(lane, room ? Cause::Reserved : Cause::Cpus, out);
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
void Scheduler::State::take_room_in(Round& round, const Request& request) {
  if (!round.oldest) return;
  std::optional<Vacancy>& kept = round.kept;
  if (kept && request.memory <= kept->memory_spare && request.cpus <= kept->cpus_spare) {
    kept->memory_spare -= request.memory;
    kept->cpus_spare = kept->cpus_spare - request.cpus;
  }
  pass(round.oldest->task, round.at);
  if (!round.owed) keep_room_in(round, *round.oldest);
}

bool Scheduler::State::waits_in_a_room(ShapeIndex shape) const {
  return waiting_.waiting_in(shape) + loaded_.waiting_in(shape) > 0;
}

Request Scheduler::State::request_to_start(TaskIndex task, Bytes memory) const {
  Request request = shape_of(task).request;
  request.memory = memory;
  // A two-phase task gets its CPUs when it trains.
  if (shape_of(task).two_phase) request.cpus = {};
  return request;
}

/// What one that is started will have taken in the end.
Request Scheduler::State::whole_request_of(const WaitingRoom::Lane& lane) const {
  Request request = request_of(lane);
  request.cpus = shapes_[lane.shape.value].request.cpus;
  return request;
}

Request Scheduler::State::request_of(const WaitingRoom::Lane& lane) const {
  // What a retry asks for beyond its shape is our own guess. Where nobody could have so much, even
  // with the machine to itself, it asks for what it could have: it would wait for ever otherwise.
  Request request = lane.request;
  const Bytes asked = shapes_[lane.shape.value].request.memory;
  if (request.memory > asked) {
    request.memory = std::max(asked, std::min(request.memory, ledger_.memory_free_alone()));
  }
  return request;
}

Cause Scheduler::State::obstacle(const WaitingRoom::Lane& lane, const Round& round) const {
  if (ledger_.tasks() >= processes_max()) return Cause::Processes;
  if (others_use_the_cpus()) return Cause::OthersUseCpu;
  if (!groups_.has_room(lane.group)) return Cause::Parallel;
  const Shape& shape = shapes_[lane.shape.value];
  // One after the other: small ones do not pass a large one.
  if (shape.two_phase && (round.loads_wait || !may_load_ahead(shape))) return Cause::Ahead;
  const Request request = request_of(lane);
  if (request.cpus > ledger_.cpus_free()) return Cause::Cpus;
  if (request.memory > ledger_.memory_free()) return Cause::Memory;
  // Nobody knows how long one waits that has loaded.
  const std::optional<Duration> takes = shape.two_phase ? std::nullopt : longest_expected(shape);
  if (round.kept && would_delay(*round.kept, whole_request_of(lane), round.at, takes)) {
    return Cause::Reserved;
  }
  return Cause::None;
}

/// Not more is loaded ahead than the machine could train at once: it would only hold memory.
bool Scheduler::State::may_load_ahead(const Shape& shape) const {
  if (ahead_ == 0) return true;
  if (limits_.waiting_max > 0 && ahead_ >= limits_.waiting_max) return false;
  return ahead_cpus_ + shape.request.cpus <= capacity_.cpus;
}

void Scheduler::State::start(std::uint32_t lane, Instant at, Decision& out) {
  const Request request = request_of(waiting_.lane(lane));
  const TaskIndex task = waiting_.take_head(lane);
  const ShapeIndex shape = tasks[task].shape;
  const AttemptKey key{.task = task, .attempt = tasks.begin_attempt(task)};
  enter(task, Status::Available, out);
  ledger_.promise(task, request);
  groups_.task_started(group_of(task));
  Running& running =
      running_.try_emplace(task, Running{.key = key, .started = at, .promise = request})
          .first->second;
  if (shape_of(task).two_phase) {
    running.stage = Stage::Load;
    set_ahead(running, true);
  } else {
    running.training_since = at;
  }
  out.commands.emplace_back(StartAttempt{.key = key, .promise = request});
  passed_.erase(task);
  if (!waits_in_a_room(shape)) clear_reason(shape, out);
}

bool Scheduler::State::others_use_the_cpus() const {
  // A limit of all CPUs is no limit: nobody can use more.
  const double most = limits_.cpu_utilization_max;
  return most < 1 && ledger_.cpu_used_by_others() >= most;
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
  return passed.times >= limits_.passes_max || at - passed.since >= limits_.passed_time_max;
}

std::optional<Vacancy> Scheduler::State::vacancy_for(const Request& request, Instant at) const {
  std::vector<Release> releases;
  releases.reserve(running_.size());
  for (const auto& [task, running] : running_) {
    releases.push_back({.at = expected_end(running, at),
                        .memory = ledger_.memory_held_by(task),
                        .cpus = running.promise.cpus});
  }
  return forecast(request, ledger_.memory_free(), ledger_.cpus_free(), std::move(releases));
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

void Scheduler::State::note_reason(const WaitingRoom::Lane& lane, Cause cause, Decision& out) {
  // The oldest lane of a shape speaks for it.
  std::uint32_t& noted = noted_in_[lane.shape.value];
  if (noted == pass_) return;
  noted = pass_;
  Cause& told = causes_[lane.shape.value];
  if (told == cause) return;
  told = cause;
  out.changes.emplace_back(ReasonChanged{.shape = lane.shape, .reason = words_for(lane, cause)});
}

void Scheduler::State::clear_reason(ShapeIndex shape, Decision& out) {
  Cause& told = causes_[shape.value];
  if (told == Cause::None) return;
  told = Cause::None;
  out.changes.emplace_back(ReasonChanged{.shape = shape, .reason = {}});
}

void Scheduler::State::note_queued(Decision& out) {
  for (const auto& [head, index] : waiting_.order()) {
    const WaitingRoom::Lane& lane = waiting_.lane(index);
    const Cause told = causes_[lane.shape.value];
    if (told == Cause::None || told == Cause::Group) note_reason(lane, Cause::Queued, out);
  }
}

std::string Scheduler::State::words_for(const WaitingRoom::Lane& lane, Cause cause) const {
  const auto hold = [](int count) {
    return fmt::format("{} {}", tasks_text(count), count == 1 ? "holds" : "hold");
  };
  switch (cause) {
    case Cause::Processes:
      if (limits_.processes_max > 0 && processes_max() == limits_.processes_max) {
        return fmt::format("max-process lets {} run at once", tasks_text(limits_.processes_max));
      }
      return fmt::format("the machine lets {} run at once ({})", tasks_text(processes_max()),
                         capacity_.processes_max_reason);
    case Cause::OthersUseCpu:
      return fmt::format("others use {:.0f} % of the CPUs, utilization-limit.cpu is {:.0f} %",
                         100 * ledger_.cpu_used_by_others(), 100 * limits_.cpu_utilization_max);
    case Cause::Parallel:
      return fmt::format("max-parallel lets {} of its group run at once",
                         tasks_text(groups_.planned(lane.group).parallel_max));
    case Cause::Cpus:
      return fmt::format("needs {}, {} of {} free, {} the others", cpus_text(lane.request.cpus),
                         count_text(ledger_.cpus_free()), count_text(capacity_.cpus),
                         hold(ledger_.tasks_with_cpus()));
    case Cause::Memory: {
      const Bytes free = std::max(Bytes{}, ledger_.memory_free());
      const Bytes others = ledger_.memory_of_others();
      return fmt::format("needs {} of memory, {} free, {} {}{}", to_text(request_of(lane).memory),
                         to_text(free), hold(ledger_.tasks()), to_text(ledger_.memory_held()),
                         others > Bytes{} ? fmt::format(", others use {}", to_text(others)) : "");
    }
    case Cause::Ahead:
      if (limits_.waiting_max > 0 && ahead_ >= limits_.waiting_max) {
        return fmt::format("max-waiting lets {} be loaded ahead", tasks_text(limits_.waiting_max));
      }
      return fmt::format("{} loaded ahead already",
                         ahead_ == 1 ? "1 task is" : fmt::format("{} tasks are", ahead_));
    case Cause::Reserved:
      return "would delay an older task that waits for more than is free";
    case Cause::Queued:
      return "older tasks are looked at first";
    case Cause::Group:
    case Cause::None:
      break;
  }
  return {};
}

}  // namespace trainyard

// The part of the scheduler that starts tasks.
#include <algorithm>
#include <cstddef>
#include <cstdint>
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
#include "schedule/ledger.h"
#include "schedule/machine_book.h"
#include "schedule/round.h"
#include "schedule/running.h"
#include "schedule/scheduler.h"
#include "schedule/state.h"
#include "schedule/waiting_room.h"

namespace trainyard::schedule {
namespace {

/// Number of lanes without room that are looked at in one pass. Those behind come when these have
/// moved on.
constexpr int kLookahead = 128;
/// Number of lanes that a pass skips because their group runs as many tasks as it may. It is one
/// comparison each, and it keeps a large group from standing before another that has room.
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

/// Comes last of all obstacles: a task that lacks disk holds back only those that would take the
/// space it waits for.
model::Cause lack_of_disk(Bytes asked, const MachineBook& book) {
  const std::optional<Bytes> free = book.ledger.disk_free();
  if (asked == Bytes{} || !free) return model::Cause::None;
  if (asked > *free) return model::Cause::Disk;
  return book.disk_waits ? model::Cause::Reserved : model::Cause::None;
}

}  // namespace

void Scheduler::State::start_what_fits(Instant at, model::Decision& out) {
  gate_opens_at_.reset();
  starts_again_at_.reset();
  if (interrupts_ > 0) return;
  ++pass_;
  if (std::exchange(out_of_order_, false)) {
    put_in_order();
  } else {
    look_further();
  }
  close_gates(at);
  const std::size_t first_command = out.commands.size();
  // First those that hold memory while they wait.
  const std::optional<Blocked> loaded = train_what_fits(at, out);
  Round round{.at = at};
  int looked = 0;
  int glanced = 0;
  auto it = waiting_.order().begin();
  while (it != waiting_.order().end() && looked < kLookahead && glanced < kGlance) {
    const WaitingRoom::Head head = *it;
    const WaitingRoom::Lane& lane = waiting_.lane(head.lane);
    if (loaded && !round.oldest &&
        waiting_.precedence_of(loaded->task, tasks[loaded->task].shape) < head.precedence) {
      keep_room_for(round, *loaded);
    }
    const auto [cause, site] = place_for(lane, round);
    if (cause == model::Cause::None) {
      const Candidate started = candidate_of(lane, machines_[site.machine.value], site.gpus);
      start(head.lane, site, at, out);
      take_room_in(round, started, site.machine);
      // The lane stands for its next task now, further back; those before it stay blocked.
      it = waiting_.order().upper_bound(head);
      continue;
    }
    if (is_lack_of_room(cause) && !round.oldest) {
      keep_room_for(
          round,
          {.task = head.precedence.task, .request = request_of(lane), .machine = std::nullopt});
    }
    if (cause == model::Cause::Settling && !site.gpus.empty()) {
      hold(request_on(lane, machines_[site.machine.value]), site);
    }
    note_reason(lane, cause, site, out);
    ++(cause == model::Cause::Parallel ? glanced : looked);
    ++it;
  }
  // Lanes so far behind were not looked at. New ones are at least reported to wait.
  if (fresh_lanes_ && it != waiting_.order().end()) note_queued(out);
  fresh_lanes_ = false;
  are_others_ = false;
  cap(first_command, out);
}

/// The first machine where nothing holds the task back. Tasks behind it wait for its obstacles on
/// the other machines, too.
Place Scheduler::State::place_for(const WaitingRoom::Lane& lane, const Round& round) {
  // The estimates of a task are looked up once for all machines.
  Looked looked{.asked = request_of(lane)};
  looked.is_too_much = asks_too_much(lane, looked.asked);
  // For a two-phase task, more is remembered about a machine than whether it has room.
  const bool is_room_enough = !looked.is_too_much && !shapes_[lane.shape.value].terms.two_phase &&
                              groups_.has_room(lane.group);
  if (is_room_enough) {
    const FreeRoom::Room enough{.cpus = looked.asked.cpus, .memory = looked.asked.memory};
    for (auto at = free_room_.first({}, enough); at;
         at = free_room_.first({at->value + 1}, enough)) {
      if (look_at(lane, round, looked, machines_[at->value])) return looked.furthest;
    }
    // All others lack CPUs or memory.
    if (looked.furthest.cause > model::Cause::Memory) return looked.furthest;
  }
  if (look_where_it_was_told(lane, round, looked)) return looked.furthest;
  for (MachineBook& book : machines_) {
    if (look_at(lane, round, looked, book)) break;
    if (is_room_enough && looked.furthest.cause == model::Cause::Memory) break;
  }
  return looked.furthest;
}

/// True if the task can start on that machine.
bool Scheduler::State::look_at(const WaitingRoom::Lane& lane, const Round& round, Looked& looked,
                               MachineBook& book) {
  const model::Request request = looked.is_too_much
                                     ? as_far_as_there_is(looked.asked, lane.tasks.front(), book)
                                     : looked.asked;
  GpuSet gpus;
  model::Cause cause = obstacle(lane, request, round, book, gpus);
  if (cause == model::Cause::None) cause = lack_of_turn(request, book, gpus, round.at);
  if (cause == model::Cause::None) {
    looked.furthest = {.cause = cause, .site = {.machine = book.index, .gpus = gpus}};
    return true;
  }
  if (cause == model::Cause::Ahead) {
    const bool on_gpus = shapes_[lane.shape.value].terms.request.gpus > 0;
    (on_gpus ? in_pass(book).gpu_loads_wait : in_pass(book).loads_wait) = true;
  }
  // If no running task may leave some of it, others going by harm none.
  if (cause == model::Cause::Disk && book.ledger.disk_may_come_free()) {
    in_pass(book).disk_waits = true;
  }
  const std::optional<Instant> tries_at = book.start_pause.tries_at();
  if (cause == model::Cause::StartsRefused && tries_at) {
    starts_again_at_ = std::min(starts_again_at_.value_or(*tries_at), *tries_at);
  }
  if (cause > looked.furthest.cause) {
    looked.furthest = {.cause = cause, .site = {.machine = book.index, .gpus = {}}};
    if (cause == model::Cause::Settling) looked.furthest.site.gpus = std::move(gpus);
  }
  return false;
}

/// The reason why a task waits on a machine that lacks room is kept as long as that is so there,
/// though it may get further on others by now: the others are not searched each time, but only when
/// there are other machines than before.
bool Scheduler::State::look_where_it_was_told(const WaitingRoom::Lane& lane, const Round& round,
                                              Looked& looked) {
  const model::Reason& last = reasons_[lane.shape.value];
  const bool is_lack = last.cause == model::Cause::Cpus || last.cause == model::Cause::Memory ||
                       last.cause == model::Cause::Parallel;
  const bool is_new = last.cause > looked.furthest.cause;
  if (are_others_ || !is_lack || !is_new || looked.is_too_much ||
      shapes_[lane.shape.value].terms.two_phase) {
    return false;
  }
  look_at(lane, round, looked, machines_[last.machine.value]);
  return looked.furthest.cause == last.cause && looked.furthest.site.machine == last.machine;
}

/// Lets those that have loaded train, oldest first; returns the oldest that cannot. They lack no
/// memory of the host, and give way to one another alone: an older task that has not started may
/// wait for the memory that they hold. It is protected all the same, as nothing is loaded that
/// would delay it.
std::optional<Blocked> Scheduler::State::train_what_fits(Instant at, model::Decision& out) {
  Round round{.at = at};
  GpuSet gpus;
  // No more are loaded ahead than the machine can train, so that all are looked at.
  auto it = loaded_.order().begin();
  while (it != loaded_.order().end()) {
    const WaitingRoom::Head head = *it;
    const WaitingRoom::Lane& lane = loaded_.lane(head.lane);
    MachineBook& book = machines_[lane.machine.value];
    model::Cause cause = obstacle_to_train(lane, round, gpus);
    if (cause == model::Cause::None) {
      cause = lack_of_turn(device_of(lane), book, gpus, at);
    }
    const model::Site site{.machine = lane.machine, .gpus = gpus};
    if (cause == model::Cause::None) {
      const Candidate started{.request = device_of(lane),
                              .gpus = gpus,
                              .takes = longest_expected(shapes_[lane.shape.value])};
      train(head.lane, site, at, out);
      take_room_in(round, started, site.machine);
      it = loaded_.order().upper_bound(head);
      continue;
    }
    if (is_lack_of_room(cause) && !round.oldest) {
      keep_room_for(
          round,
          {.task = head.precedence.task, .request = device_of(lane), .machine = lane.machine});
    }
    if (cause == model::Cause::Settling && !gpus.empty()) {
      hold(device_of(lane), site);
    }
    note_reason(lane, cause, site, out);
    ++it;
  }
  return round.oldest;
}

/// The first task of a round that lacks room is the one for which some is kept.
void Scheduler::State::keep_room_for(Round& round, Blocked oldest) const {
  round.oldest = std::move(oldest);
  // Before that small ones may pass freely: keeping room from the start would leave the machine
  // idle whenever the oldest is a large one.
  round.owed = passed_too_often(round.oldest->task, round.at);
  if (round.owed) round.kept = room_to_keep(*round.oldest, round.at);
}

/// The room on the machine where it is expected first.
std::optional<Kept> Scheduler::State::room_to_keep(const Blocked& blocked, Instant at) const {
  std::optional<Kept> first;
  for (const MachineBook& book : machines_) {
    model::Request request = blocked.request;
    if (blocked.machine) {
      // The task has loaded there and only waits to train: a silent keeper does not delay that.
      if (*blocked.machine != book.index) continue;
    } else {
      if (!book.may_start() || !book.is_where(request.where)) continue;
      if (!has_time_for(shape_of(blocked.task), book, at)) continue;
      if (lack_for_good(blocked.task, request, book) != model::Cause::None) continue;
      const bool is_too_much = is_nowhere(whole_of(blocked.task, request));
      if (is_too_much) request = as_far_as_there_is(request, blocked.task, book);
    }
    std::optional<Vacancy> vacancy = vacancy_for(request, book, at);
    if (!vacancy) continue;
    const bool sooner =
        !first || (vacancy->at && (!first->vacancy.at || *vacancy->at < *first->vacancy.at));
    if (sooner) first = {.machine = book.index, .vacancy = *std::move(vacancy)};
  }
  return first;
}

/// One has been started, and the oldest that lacks room was passed by it.
void Scheduler::State::take_room_in(Round& round, const Candidate& started,
                                    model::MachineIndex machine) {
  if (!round.oldest) return;
  // The kept room is computed once a round. Computed again it would count on the tasks that started
  // in between, and let more and more pass.
  if (round.kept && round.kept->machine == machine) {
    take_beside(round.kept->vacancy, started, machines_[machine.value].chooser);
  }
  const Passed first{.times = 0, .since = round.at};
  ++passed_.try_emplace(round.oldest->task, first).first->second.times;
  if (!round.owed) keep_room_for(round, *round.oldest);
}

bool Scheduler::State::waits_in_a_room(model::ShapeIndex shape) const {
  return waiting_.waiting_in(shape) + loaded_.waiting_in(shape) > 0;
}

/// The resources that a started task will have taken in the end, and how long it takes.
Candidate Scheduler::State::candidate_of(const WaitingRoom::Lane& lane, const MachineBook& book,
                                         const GpuSet& gpus) const {
  const model::Shape& shape = shapes_[lane.shape.value];
  Candidate candidate{
      .request = request_on(lane, book), .gpus = gpus, .takes = longest_expected(shape)};
  if (!shape.terms.two_phase) return candidate;
  // The wait of a task that has loaded is of unknown length, and so are its GPUs then.
  candidate = {
      .request = whole_on(lane.tasks.front(), candidate.request, book), .gpus = {}, .takes = {}};
  return candidate;
}

/// Why the head of a lane cannot be started on a machine now; the GPUs that it gets when it can.
model::Cause Scheduler::State::obstacle(const WaitingRoom::Lane& lane,
                                        const model::Request& request, const Round& round,
                                        const MachineBook& book, GpuSet& gpus) const {
  // The first obstacle is the reason that people read. So these come from what holds everybody back
  // to what this lane lacks itself.
  if (!book.was_read || book.is_gone) return model::Cause::NoMachine;
  if (!book.is_where(lane.request.where)) return model::Cause::Elsewhere;
  const model::Shape& shape = shapes_[lane.shape.value];
  if (!has_time_for(shape, book, round.at)) return model::Cause::NoTime;
  if (book.keeper_silent) return model::Cause::KeeperSilent;
  if (book.start_pause.holds_back(round.at)) return model::Cause::StartsRefused;
  if (has_all_processes(book)) return model::Cause::Processes;
  // One of a run always trains, however busy others keep the CPUs; and those on GPUs use few of
  // them.
  const auto on_cpus = [](const model::Shape& of) { return of.terms.request.gpus == 0; };
  const auto runs_on_cpus = [&](const auto& it) { return on_cpus(shape_of(it.first)); };
  // A limit of all CPUs is no limit: no process can use more.
  const double most = policy_.cpu_utilization_max;
  const bool others_use_the_cpus = most < 1 && book.ledger.cpu_used_by_others() >= most;
  if (on_cpus(shape) && others_use_the_cpus && std::ranges::any_of(running_, runs_on_cpus)) {
    return model::Cause::OthersUseCpu;
  }
  if (!groups_.has_room(lane.group)) return model::Cause::Parallel;
  // One after the other: small ones do not pass a large one.
  const bool loads_wait = shape.terms.request.gpus > 0 ? book.gpu_loads_wait : book.loads_wait;
  if (shape.terms.two_phase) {
    if (loads_wait || !may_load_ahead(shape, book)) return model::Cause::Ahead;
    const model::Cause for_good = lack_for_good(lane.tasks.front(), request, book);
    if (for_good != model::Cause::None) return for_good;
  }
  if (request.cpus > book.ledger.cpus_free()) return model::Cause::Cpus;
  if (request.memory > book.ledger.memory_free()) return model::Cause::Memory;
  if (has_larger_gpus_elsewhere(request, book)) return model::Cause::Gpus;
  const model::Cause lack = choose_gpus(request, book, round.at, gpus);
  if (is_lack_of_room(lack)) return lack;
  if (round.kept && would_take_kept_room(round, candidate_of(lane, book, gpus), book)) {
    return model::Cause::Reserved;
  }
  const model::Cause disk = lack_of_disk(request.disk, book);
  return disk == model::Cause::None ? lack : disk;
}

/// True if the task would take the room that is kept for the oldest.
bool Scheduler::State::would_take_kept_room(const Round& round, const Candidate& candidate,
                                            const MachineBook& book) const {
  return round.kept && round.kept->machine == book.index &&
         would_delay(round.kept->vacancy, candidate, round.at, book.chooser);
}

/// The same for one that has loaded, on the machine where it has.
model::Cause Scheduler::State::obstacle_to_train(const WaitingRoom::Lane& lane, const Round& round,
                                                 GpuSet& gpus) const {
  const MachineBook& book = machines_[lane.machine.value];
  const model::Request request = device_of(lane);
  if (request.cpus > book.ledger.cpus_free()) return model::Cause::Cpus;
  const model::Cause lack = choose_gpus(request, book, round.at, gpus);
  if (is_lack_of_room(lack)) return lack;
  // A retry in the same process holds its GPUs while it waits. The task that is owed room may wait
  // for just those.
  if (!running_.at(lane.tasks.front()).site.gpus.empty()) return model::Cause::None;
  const Candidate candidate{
      .request = request, .gpus = gpus, .takes = longest_expected(shapes_[lane.shape.value])};
  return would_take_kept_room(round, candidate, book) ? model::Cause::Reserved : lack;
}

/// Not more is loaded ahead than the CPUs could train at once, or than is good for the GPUs: it
/// would only hold memory.
bool Scheduler::State::may_load_ahead(const model::Shape& shape, const MachineBook& book) const {
  if (policy_.waiting_max > 0 && ahead_ >= policy_.waiting_max) return false;
  if (shape.terms.request.gpus > 0) return book.ahead_on_gpus < ahead_max_;
  if (book.ahead == book.ahead_on_gpus) return true;
  return book.ahead_cpus + shape.terms.request.cpus <= book.capacity.cpus;
}

void Scheduler::State::start(std::uint32_t lane, const model::Site& site, Instant at,
                             model::Decision& out) {
  const model::Request asked = waiting_.lane(lane).request;
  const model::Request given = request_on(waiting_.lane(lane), machines_[site.machine.value]);
  const model::TaskIndex task = waiting_.take_head(lane);
  begin_attempt(task, {.asked = asked, .given = given, .site = site}, at, out);
  passed_.erase(task);
  settle_reason(tasks[task].shape, out);
}

/// Starts an attempt of a task that is not in a lane any more.
Scheduler::State::Running& Scheduler::State::begin_attempt(model::TaskIndex task,
                                                           const Beginning& begins, Instant at,
                                                           model::Decision& out) {
  const auto& [asked, request, site] = begins;
  MachineBook& book = machines_[site.machine.value];
  const model::ShapeIndex shape = tasks[task].shape;
  const Status before = tasks[task].status;
  const model::AttemptKey key{.task = task, .attempt = tasks.begin_attempt(task)};
  enter(task, Status::Available, out);
  // The books first: the next look in this pass must find less room.
  book.ledger.promise(task, request);
  promise_gpus(task, site, request, at);
  if (!site.gpus.empty()) in_pass(book).occupy(request, site.gpus, at, policy_.gpu_settle_max);
  book.start_pause.try_to_start(key);
  book.time.began(shape_of(task).terms.early_signal.before);
  if (const auto end = book.time.next_end()) first_end_ = std::min(first_end_.value_or(*end), *end);
  groups_.task_started(group_of(task));
  Running& running = running_
                         .try_emplace(task, Running{.key = key,
                                                    .started = at,
                                                    .memory_asked = asked.memory,
                                                    .status_before = before,
                                                    .promise = request,
                                                    .site = site})
                         .first->second;
  if (shapes_[shape.value].terms.two_phase) {
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
                                                .site = site,
                                                .memory_max = memory_max_of(task, request.memory)});
  return running;
}

/// scheduler.max-process is about the run, what the operating system lets us have about a machine.
bool Scheduler::State::has_all_processes(const MachineBook& book) const {
  if (policy_.processes_max > 0 && std::cmp_greater_equal(running_.size(), policy_.processes_max)) {
    return true;
  }
  const int possible = book.capacity.processes_max;
  return possible > 0 && book.ledger.tasks() >= possible;
}

bool Scheduler::State::passed_too_often(model::TaskIndex task, Instant at) const {
  const auto found = passed_.find(task);
  if (found == passed_.end()) return false;
  const Passed& passed = found->second;
  // A minute is long where tasks take seconds, and nothing where they take hours.
  constexpr int kTimesUsual = 10;
  const bool known = all_durations_.count > 0;
  const Duration usual =
      known ? all_durations_.sum / all_durations_.count : shape_of(task).terms.train_expected;
  const Duration time_max = std::max(policy_.passed_time_max, kTimesUsual * usual);
  return passed.times >= policy_.passes_max || at - passed.since >= time_max;
}

std::optional<Vacancy> Scheduler::State::vacancy_for(const model::Request& request,
                                                     const MachineBook& book, Instant at) const {
  // A task gives back all that it holds, which may be more than its reservation.
  std::vector<Release> releases;
  releases.reserve(static_cast<std::size_t>(book.ledger.tasks()));
  for (const model::TaskIndex task : book.ledger.holders()) {
    const Running& running = running_.at(task);
    releases.push_back({.at = expected_end(running, at),
                        .memory = book.ledger.memory_held_by(task),
                        .cpus = running.promise.cpus,
                        .gpus = book.gpus.shares_of(task)});
  }
  for (const GpuLedger::Lingering& gone : book.gpus.lingering()) {
    releases.push_back(
        {.at = gone.until,
         .gpus = {{.gpu = gone.gpu, .memory = gone.memory, .whole = false, .sharing = {}}}});
  }
  const std::span<const GpuRoom> gpus = book.gpus.room();
  return find_vacancy(request,
                      {.memory = book.ledger.memory_free(),
                       .cpus = book.ledger.cpus_free(),
                       .gpus = {gpus.begin(), gpus.end()}},
                      std::move(releases), book.chooser);
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
  // A task that waits for its device ends at an unknown time.
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

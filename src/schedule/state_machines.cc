// The part of the scheduler that knows which machines there are, what still ran on them when the
// run was resumed, and when they are taken away.
#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/check.h"
#include "base/time.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/site_wish.h"
#include "model/status.h"
#include "model/terms.h"
#include "schedule/ending.h"
#include "schedule/fits_nowhere.h"
#include "schedule/gpu_ledger.h"
#include "schedule/gpu_room.h"
#include "schedule/ledger.h"
#include "schedule/machine_book.h"
#include "schedule/scheduler.h"
#include "schedule/state.h"
#include "schedule/waiting_room.h"

namespace trainyard::schedule {

/// A machine that comes back may have changed: it gets new books.
void Scheduler::State::machine_joined(Instant at, const model::MachineJoined& event) {
  check(event.machine.value <= machines_.size(), "machines are numbered as they join");
  if (event.machine.value == machines_.size()) {
    machines_.emplace_back(event, policy_, at);
  } else {
    MachineBook& book = machines_[event.machine.value];
    check(book.is_gone && book.ledger.tasks() == 0, "only a machine that has gone joins again");
    book = MachineBook(event, policy_, at);
  }
  are_others_ = true;
  machines_[event.machine.value].ledger.show_in(free_room_, event.machine);
  memory_most_ = {};
  for (const MachineBook& book : machines_) {
    memory_most_ = std::max(memory_most_, book.memory_most(policy_));
  }
}

void Scheduler::State::machine_gone(const model::MachineGone& event) {
  machines_.at(event.machine.value).is_gone = true;
  free_room_.forget(event.machine);
  are_others_ = true;
}

void Scheduler::State::keeper_silent(const model::KeeperSilent& event) {
  machines_.at(event.machine.value).keeper_silent = event.silent;
}

model::Capacity Scheduler::State::whole() const {
  model::Capacity all;
  for (const MachineBook& book : machines_) {
    if (book.is_gone) continue;
    all.memory += book.capacity.memory;
    all.cpus = all.cpus + book.capacity.cpus;
    all.gpus.insert(all.gpus.end(), book.capacity.gpus.begin(), book.capacity.gpus.end());
  }
  return all;
}

Bytes Scheduler::State::memory_most(const model::SiteWish& where) const {
  if (where.says_nothing()) return memory_most_;
  Bytes most;
  for (const MachineBook& book : machines_) {
    if (book.is_where(where)) most = std::max(most, book.memory_most(policy_));
  }
  return most;
}

Bytes Scheduler::State::memory_free_alone(const model::SiteWish& where) const {
  std::optional<Bytes> most;
  for (const MachineBook& book : machines_) {
    const Bytes free = book.ledger.memory_free_alone();
    if (!book.is_gone && book.is_where(where)) most = std::max(most.value_or(free), free);
  }
  return most.value_or(Bytes{});
}

Bytes Scheduler::State::gpu_memory_most(const model::Request& request) const {
  Bytes most;
  for (const MachineBook& book : machines_) {
    if (!book.is_where(request.where)) continue;
    most = std::max(most, book.chooser.most_memory(request));
  }
  return most;
}

Bytes Scheduler::State::gpu_memory_alone(const model::Request& request) const {
  Bytes most;
  for (const MachineBook& book : machines_) {
    if (!book.is_where(request.where)) continue;
    most = std::max(most, book.chooser.most_memory(book.gpus.room_alone(), request));
  }
  return most;
}

void Scheduler::State::let_go(Instant at) {
  std::erase_if(lingering_, [&](model::MachineIndex machine) {
    GpuLedger& gpus = machines_[machine.value].gpus;
    gpus.let_go(at);
    return gpus.lingering().empty();
  });
}

MachineBook& Scheduler::State::in_pass(MachineBook& book) {
  if (!std::exchange(book.is_in_pass, true)) in_pass_.push_back(book.index);
  return book;
}

/// For tasks that are in their first allocation now. Called before any task is considered in a
/// pass.
void Scheduler::State::close_gates(Instant at) {
  for (const model::MachineIndex machine : in_pass_) machines_[machine.value].begin_pass();
  in_pass_.clear();
  if (policy_.gpu_settle_max == Duration{0}) return;
  for (const auto& [task, running] : running_) {
    MachineBook& book = book_of(running);
    const GpuSet& gpus = running.site.gpus;
    if (gpus.empty() || !running.training_since || book.gpus.has_settled(task)) continue;
    const Instant until = *running.training_since + policy_.gpu_settle_max;
    if (until > at) in_pass(book).is_settling(gpus, running.promise.gpu_memory, until);
  }
}

void Scheduler::State::hold(const model::Request& request, const model::Site& site) {
  const std::optional<Instant> opens =
      in_pass(machines_[site.machine.value]).hold(request, site.gpus);
  if (opens) gate_opens_at_ = std::min(gate_opens_at_.value_or(*opens), *opens);
}

bool Scheduler::State::is_next(model::AttemptKey key) const {
  if (!tasks.knows(key.task) || running_.contains(key.task)) return false;
  const TaskTable::Task& known = tasks[key.task];
  return known.verdict == model::Verdict::None &&
         key.attempt == (known.attempt == 0 ? known.first_attempt : known.attempt + 1);
}

bool Scheduler::State::can_go_on(const model::AttemptFound& found) const {
  const model::TaskIndex task = found.key.task;
  return interrupts_ == 0 && is_next(found.key) && !shape_of(task).terms.two_phase &&
         groups_.phase(group_of(task)) == model::GroupPhase::Running &&
         !machines_.at(found.site.machine.value).is_gone;
}

/// The attempt keeps its reservation, whatever would be reserved now.
void Scheduler::State::attempt_found(Instant at, const model::AttemptFound& event,
                                     model::Decision& out) {
  const model::TaskIndex task = event.key.task;
  if (!can_go_on(event)) {
    // The tasks that its group needs may have started over. The next attempt has another number.
    if (is_next(event.key)) tasks.begin_attempt(task);
    out.commands.emplace_back(model::StopAttempt{.key = event.key, .kill = true});
    return;
  }
  // Another one of its group has been tried before.
  if (is_held(task)) end_trial(group_of(task), out);
  if (!take_out(task)) leave_aside(task);
  // The request of the retry is computed from the reservation.
  retry_requests_.take_memory(task);
  retry_at_.erase(task);
  Running& running = begin_attempt(
      task, {.asked = event.promise, .given = event.promise, .site = event.site}, at, out);
  running.started = event.since;
  running.training_since = event.since;
  running.time_left = time_limit_of(task) - (at - event.since);
  running.gpu_memory_max = event.gpu_memory_max;
  std::get<model::StartAttempt>(out.commands.back()).gpu_memory_max = event.gpu_memory_max;
  settle_reason(tasks[task].shape, out);
}

bool Scheduler::State::has_time_for(const model::Shape& shape, const MachineBook& book,
                                    Instant at) const {
  if (!book.time.last_term()) return true;
  const model::Terms& terms = shape.terms;
  MachineTime::Wish wish{.before = terms.early_signal.before,
                         .takes = longest_expected(shape),
                         .goes_on_where_it_was = model::goes_on_where_it_was(terms)};
  if (!wish.takes && terms.train_expected > Duration{0}) {
    wish.takes = terms.load_expected + terms.train_expected;
  }
  return book.time.is_enough_for(wish, at);
}

void Scheduler::State::end_before_machines(Instant at, model::Decision& out) {
  if (!first_end_ || *first_end_ > at) return;
  first_end_.reset();
  for (MachineBook& book : machines_) {
    end_before(book, at, out);
    const std::optional<Instant> next = book.time.next_end();
    if (next) first_end_ = std::min(first_end_.value_or(*next), *next);
  }
}

void Scheduler::State::end_before(MachineBook& book, Instant at, model::Decision& out) {
  const std::optional<Instant> due = book.time.next_end();
  const std::optional<Instant> last_term = book.time.last_term();
  if (!due || *due > at || !last_term) return;
  std::optional<Instant> next;
  for (const model::TaskIndex task : book.ledger.holders()) {
    Running& running = running_.at(task);
    const Duration before = shape_of(task).terms.early_signal.before;
    const Instant end = book.time.end_of(before).value_or(*last_term);
    if (end > at) next = std::min(next.value_or(end), end);
    // A task that has reported its outcome, or was stopped, is about to exit.
    if (end > at || running.cause != StopCause::None || running.word) continue;
    stop(running, StopCause::TimeOver, at, out);
    const bool is_late = running.deadline && *running.deadline > *last_term;
    if (!running.terminated && is_late) set_deadline(running, last_term);
  }
  book.time.set_next_end(next);
}

bool Scheduler::State::is_of_use(model::MachineIndex machine, Instant at) const {
  const bool is_known = machine.value < machines_.size() && machines_[machine.value].was_read &&
                        !machines_[machine.value].is_gone;
  // Its news is on its way.
  if (!is_known) return true;
  const MachineBook& book = machines_[machine.value];
  if (book.ledger.tasks() > 0) return true;
  if (count_waiting() == 0 || !book.time.is_enough_for({}, at)) return false;
  std::size_t in_room = 0;
  for (const WaitingRoom::Head& head : waiting_.order()) {
    const WaitingRoom::Lane& lane = waiting_.lane(head.lane);
    in_room += lane.tasks.size();
    const bool may_be_there =
        book.is_where(lane.request.where) && has_time_for(shapes_[lane.shape.value], book, at);
    if (may_be_there && could_have(request_on(lane, book), book)) return true;
  }
  // Tasks that wait for other tasks or for a time are not in the waiting room. They may be ready at
  // any moment.
  return count_waiting() > in_room;
}

/// Skips the tasks that request more than the whole disk of any machine has.
void Scheduler::State::give_up_on_disk(Instant at, model::Decision& out) {
  if (interrupts_ > 0) return;
  Bytes total;
  for (const MachineBook& book : machines_) {
    const std::optional<model::DiskRoom>& disk = book.ledger.disk();
    if (!disk) return;
    total = std::max(total, disk->total);
  }
  // Gathered first: giving up takes tasks out of the lanes that are walked here.
  std::vector<model::TaskIndex> lost;
  for (const WaitingRoom::Head& head : waiting_.order()) {
    const WaitingRoom::Lane& lane = waiting_.lane(head.lane);
    if (lane.request.disk <= total) continue;
    lost.insert(lost.end(), lane.tasks.begin(), lane.tasks.end());
  }
  for (const model::TaskIndex task : lost) {
    give_up_waiting(task, more_than_the_disk(shape_of(task).terms.request.disk, total), at, out);
  }
}

}  // namespace trainyard::schedule

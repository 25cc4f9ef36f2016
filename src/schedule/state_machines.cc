// The part of the scheduler that knows which machines there are.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/check.h"
#include "base/time.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/resources.h"
#include "model/site_wish.h"
#include "schedule/gpu_ledger.h"
#include "schedule/gpu_room.h"
#include "schedule/ledger.h"
#include "schedule/machine_book.h"
#include "schedule/scheduler.h"
#include "schedule/state.h"

namespace trainyard::schedule {

/// One that comes back may be another than it was: its books begin anew.
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

/// For those that are in their first allocation now. Before anybody is looked at in a pass.
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

}  // namespace trainyard::schedule

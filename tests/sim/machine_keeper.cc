// The part of the made-up machine in which those fail who start the processes and hear of them: the
// keeper, the guard behind it, and the yard itself.
#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "base/check.h"
#include "base/time.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "sim/behaviour.h"
#include "sim/faults.h"
#include "sim/machine.h"

namespace trainyard::sim {

/// Returns the attempts whose end was not reported yet: it is lost now.
std::set<model::AttemptKey> MadeUpMachine::end_what_runs() {
  for (const auto& [task, process] : processes_) {
    unheard_.insert(process.key);
    leave_on_disk(process);
  }
  processes_.clear();
  return std::exchange(unheard_, {});
}

/// Requests from now on wait for the keeper that takes its place.
void MadeUpMachine::lose_keeper(Duration for_so_long) {
  if (keeper_gone_ || keeper_is_replaced_) return;
  world_.counts.count(Fault::KeeperDies);
  keeper_is_replaced_ = true;
  tell(model::KeeperSilent{.silent = true});
  at(now() + for_so_long, [this, vanished = end_what_runs(), agents = agents_] {
    if (agents == agents_) replace_keeper(vanished);
  });
}

void MadeUpMachine::replace_keeper(const std::set<model::AttemptKey>& vanished) {
  if (keeper_gone_) return;
  keeper_is_replaced_ = false;
  for (const model::AttemptKey& key : vanished) {
    tell(model::AttemptEnded{.key = key, .end = model::Vanished{"the keeper died"}});
  }
  tell(model::KeeperSilent{.silent = false,
                           .another = static_cast<std::int64_t>(world_.agenda.number())});
  for (const model::Command& command : std::exchange(held_, {})) do_what_was_asked(command);
}

void MadeUpMachine::lose_guard() {
  // If the keeper has just died, its end reports the processes.
  if (keeper_gone_ || keeper_is_replaced_) return;
  world_.counts.count(Fault::GuardDies);
  keeper_gone_ = true;
  for (const model::AttemptKey& key : end_what_runs()) {
    tell(model::AttemptEnded{.key = key, .end = model::Vanished{"the guard died"}});
  }
  tell(model::InterruptAsked{});
}

/// The world goes on meanwhile. When the yard continues, it looks first, and gets the other news
/// then.
void MadeUpMachine::stop_yard(Duration lasts) {
  world_.counts.count(Fault::YardSuspended);
  const Instant until = now() + lasts;
  std::vector<model::Event> heard = std::exchange(inbox_, {});
  ++samples_delayed_;
  stopped_until_ = until;
  while (world_.agenda.next() <= until) world_.agenda.do_next();
  --samples_delayed_;
  stopped_until_.reset();
  world_.agenda.pass_to(until);
  std::vector<model::Event> news = std::exchange(inbox_, {});
  inbox_ = std::move(heard);
  if (part_.joins) tell(read());
  for (model::Event& event : news) tell(std::move(event.what));
}

bool MadeUpMachine::has(model::TaskIndex task) const {
  return processes_.contains(task) || std::ranges::any_of(held_, [task](const auto& command) {
           const auto* const start = std::get_if<model::StartAttempt>(&command);
           return start != nullptr && start->key.task == task;
         });
}

void MadeUpMachine::look_first() {
  if (!cards_.empty()) tell(read_gpus());
  tell(read());
}

void MadeUpMachine::end_all(Duration within) {
  held_.clear();
  for (auto& [task, process] : processes_) {
    process.killed = true;
    end_at(now() + random_.between(Duration{0}, within), process,
           model::KilledBy{.signal = kSigkill});
  }
}

void MadeUpMachine::begin_anew() {
  check(processes_.empty(), "another agent has seen to the end of what ran");
  ++agents_;
  unheard_.clear();
  held_.clear();
  keeper_gone_ = false;
  keeper_is_replaced_ = false;
  for (CardState& card : cards_) card.found = false;
}

}  // namespace trainyard::sim

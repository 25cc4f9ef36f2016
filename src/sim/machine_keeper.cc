// The part of the made-up machine in which those fail who start the processes and hear of them: the
// keeper, the guard behind it, and the yard itself.
#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "base/time.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "sim/faults.h"
#include "sim/machine.h"

namespace trainyard::sim {

/// Returns the attempts of which the end was not told yet: nobody knows it any more.
std::set<model::AttemptKey> MadeUpMachine::end_what_runs() {
  for (const auto& [task, process] : processes_) {
    unheard_.insert(process.key);
    leave_on_disk(process);
  }
  processes_.clear();
  return std::exchange(unheard_, {});
}

/// What is asked of it from now on waits for the one that takes its place.
void MadeUpMachine::lose_keeper(Duration for_so_long) {
  if (keeper_gone_ || keeper_is_replaced_) return;
  counts_.count(Fault::KeeperDies);
  keeper_is_replaced_ = true;
  tell(model::KeeperSilent{.silent = true});
  at(now_ + for_so_long, [this, vanished = end_what_runs()] { replace_keeper(vanished); });
}

void MadeUpMachine::replace_keeper(const std::set<model::AttemptKey>& vanished) {
  if (keeper_gone_) return;
  keeper_is_replaced_ = false;
  for (const model::AttemptKey& key : vanished) {
    tell(model::AttemptEnded{.key = key, .end = model::Vanished{"the keeper died"}});
  }
  tell(model::KeeperSilent{.silent = false, .another = static_cast<std::int64_t>(next_number_++)});
  for (const model::Command& command : std::exchange(held_, {})) do_what_was_asked(command);
}

void MadeUpMachine::lose_guard() {
  // Had the keeper just died, what ran is told of by that.
  if (keeper_gone_ || keeper_is_replaced_) return;
  counts_.count(Fault::GuardDies);
  keeper_gone_ = true;
  for (const model::AttemptKey& key : end_what_runs()) {
    tell(model::AttemptEnded{.key = key, .end = model::Vanished{"the guard died"}});
  }
  tell(model::InterruptAsked{});
}

/// All goes on meanwhile. When the yard does, it looks first, and hears of the rest then.
void MadeUpMachine::stop_yard(Duration lasts) {
  counts_.count(Fault::YardStopped);
  const Instant until = now_ + lasts;
  std::vector<model::Event> heard = std::exchange(inbox_, {});
  ++samples_delayed_;
  while (agenda_.begin()->first.first <= until) do_next();
  --samples_delayed_;
  now_ = std::max(now_, until);
  std::vector<model::Event> news = std::exchange(inbox_, {});
  inbox_ = std::move(heard);
  tell(read());
  for (model::Event& event : news) tell(std::move(event.what));
}

}  // namespace trainyard::sim

#include "sim/run_sim.h"

#include <cstddef>
#include <deque>
#include <expected>
#include <functional>
#include <utility>
#include <vector>

#include "base/result.h"
#include "journal/recorder.h"
#include "model/turn.h"
#include "run/drive.h"
#include "schedule/scheduler.h"
#include "sim/agenda.h"
#include "sim/checkers.h"
#include "sim/fleet_rules.h"
#include "sim/fleet_workload.h"
#include "sim/machine.h"
#include "sim/made_up_fleet.h"
#include "sim/turn_text.h"
#include "sim/watcher.h"
#include "sim/workload.h"

namespace trainyard::sim {
namespace {

/// A journal that keeps the last turns, if any, and cannot write while the made-up disk is full.
class WatchedRecorder final : public journal::Recorder {
 public:
  WatchedRecorder(std::function<bool()> disk_full, Watcher& watcher, std::size_t keep)
      : disk_full_(std::move(disk_full)), watcher_(watcher), keep_(keep) {}

  Result<void> commit(const model::Turn& turn) override {
    const bool writes = !disk_full_();
    if (keep_ > 0 && !watcher_.complaint()) remember(turn, writes);
    watcher_.offered(turn, writes);
    // This is how a run that broke a rule is ended.
    if (!writes || watcher_.complaint()) return std::unexpected(Error{"no space left on device"});
    events_ += turn.events.size();
    return {};
  }

  [[nodiscard]] std::uint64_t events() const { return events_; }
  [[nodiscard]] const std::deque<std::string>& kept() const { return kept_; }

 private:
  void remember(const model::Turn& turn, bool written) {
    // A turn that is offered again has grown; only what is new is said.
    model::Turn fresh;
    for (std::size_t i = offered_; i < turn.events.size(); ++i) {
      fresh.events.push_back(turn.events[i]);
      fresh.decisions.push_back(turn.decisions[i]);
    }
    offered_ = written ? 0 : turn.events.size();
    kept_.push_back(to_text(fresh) + (written ? "" : "           ! not written\n"));
    if (kept_.size() > keep_) kept_.pop_front();
  }

  std::function<bool()> disk_full_;
  Watcher& watcher_;
  std::size_t keep_;
  std::size_t offered_ = 0;
  std::uint64_t events_ = 0;
  std::deque<std::string> kept_;
};

/// On whatever machine the workload has, or on several.
template <class MadeUp>
std::deque<std::string> run(const Workload& workload, MadeUp& machine, Watcher& watcher,
                            std::size_t keep, Outcome& outcome) {
  WatchedRecorder recorder([&machine] { return machine.disk_full(); }, watcher, keep);
  schedule::Scheduler scheduler(workload.policy);
  std::vector<run::Observer> observers;
  const Result<void> done = run::drive(scheduler, machine, recorder, observers,
                                       {.patience = workload.patience, .tell = {}});
  watcher.over(!done.has_value(), machine.processes());
  outcome.broken = watcher.complaint();
  outcome.events = recorder.events();
  outcome.tasks = workload.plan.tasks.size();
  return recorder.kept();
}

std::deque<std::string> run(std::uint64_t seed, std::size_t keep, Outcome& outcome) {
  Agenda agenda;
  if (machines_of(seed) > 1) {
    const FleetWorkload workload = make_fleet_workload(seed);
    FleetRules rules(workload.yard.plan, workload.yard.policy, outcome.faults);
    MadeUpFleet fleet(seed, workload,
                      {.watcher = rules, .counts = outcome.faults, .agenda = agenda});
    return run(workload.yard, fleet, rules, keep, outcome);
  }
  const Workload workload = make_workload(seed);
  Checkers checkers(workload, outcome.faults);
  MadeUpMachine machine(seed, workload,
                        {.watcher = checkers, .counts = outcome.faults, .agenda = agenda});
  return run(workload, machine, checkers, keep, outcome);
}

}  // namespace

Outcome run_seed(std::uint64_t seed) {
  Outcome outcome;
  run(seed, 0, outcome);
  return outcome;
}

std::string last_turns(std::uint64_t seed, int count) {
  Outcome outcome;
  std::string text;
  for (const std::string& turn : run(seed, static_cast<std::size_t>(count), outcome)) text += turn;
  return text;
}

}  // namespace trainyard::sim

#include "sim/run_sim.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <expected>
#include <string>
#include <vector>

#include "base/result.h"
#include "journal/recorder.h"
#include "model/turn.h"
#include "run/drive.h"
#include "schedule/scheduler.h"
#include "sim/checkers.h"
#include "sim/machine.h"
#include "sim/turn_text.h"
#include "sim/workload.h"

namespace trainyard::sim {
namespace {

/// A journal that keeps the last turns, if any, and cannot write while the made-up disk is full.
class WatchedRecorder final : public journal::Recorder {
 public:
  WatchedRecorder(const MadeUpMachine& machine, Checkers& checkers, std::size_t keep)
      : machine_(machine), checkers_(checkers), keep_(keep) {}

  Result<void> commit(const model::Turn& turn) override {
    const bool writes = !machine_.disk_full();
    if (keep_ > 0 && !checkers_.complaint()) remember(turn, writes);
    checkers_.offered(turn, writes);
    // This is how a run that broke a rule is ended.
    if (!writes || checkers_.complaint()) return std::unexpected(Error{"no space left on device"});
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

  const MadeUpMachine& machine_;
  Checkers& checkers_;
  std::size_t keep_;
  std::size_t offered_ = 0;
  std::uint64_t events_ = 0;
  std::deque<std::string> kept_;
};

std::deque<std::string> run(std::uint64_t seed, std::size_t keep, Outcome& outcome) {
  const Workload workload = make_workload(seed);
  Checkers checkers(workload, outcome.faults);
  MadeUpMachine machine(seed, workload, checkers, outcome.faults);
  WatchedRecorder recorder(machine, checkers, keep);
  schedule::Scheduler scheduler(workload.policy, workload.capacity);
  std::vector<run::Observer> observers;
  const Result<void> done = run::drive(scheduler, machine, recorder, observers,
                                       {.patience = workload.patience, .tell = {}});
  checkers.over(!done.has_value(), machine.processes());
  outcome.broken = checkers.complaint();
  outcome.events = recorder.events();
  outcome.tasks = workload.plan.tasks.size();
  return recorder.kept();
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

#include "sim/fleet_rules.h"

#include <algorithm>
#include <set>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/match.h"
#include "sim/fleet_workload.h"

namespace trainyard::sim {
namespace {

Bytes unused(Bytes of, double utilization_max) {
  return {static_cast<std::int64_t>(static_cast<double>(of.count) * (1 - utilization_max))};
}

/// All memory that tasks can have of it.
Bytes memory_of(const model::Capacity& machine, const model::Policy& policy) {
  return machine.memory -
         std::max(policy.memory_remain, unused(machine.memory, policy.memory_utilization_max));
}

Bytes memory_of(const model::Gpu& gpu, const model::Policy& policy) {
  const Bytes remain =
      policy.gpu_memory_remain.value_or(std::min(gb(4), Bytes{gpu.memory.count / 10}));
  return gpu.memory - std::max(remain, unused(gpu.memory, policy.gpu_memory_utilization_max));
}

}  // namespace

void FleetRules::complain(std::string what) {
  if (complaint_) return;
  complaint_ = fmt::format("at {} ms: {}", now_.since_start.count(), std::move(what));
}

void FleetRules::expect(bool holds, std::string_view rule) {
  if (!holds) complain(std::string(rule));
}

void FleetRules::expect_of(model::TaskIndex task, bool holds, std::string_view rule) {
  if (!holds) complain(fmt::format("task {}: {}", task.value, rule));
}

void FleetRules::offered(const model::Turn& turn, bool committed) {
  expect(turn.events.size() == turn.decisions.size(), "there is a decision for each event");
  for (; looked_at_ < turn.events.size() && !complaint_; ++looked_at_) {
    look_at(turn.events[looked_at_], turn.decisions[looked_at_]);
  }
  written_ = committed;
  if (committed) looked_at_ = 0;
}

void FleetRules::look_at(const model::Event& event, const model::Decision& decision) {
  expect(event.at >= now_, "time does not go back");
  now_ = event.at;
  refused_.reset();
  happened(event);
  for (const model::Change& change : decision.changes) {
    if (const auto* const it = std::get_if<model::TaskChanged>(&change)) changed(*it);
  }
  for (const model::Command& command : decision.commands) {
    match(command, [this](const auto& it) { decided(it); });
    due_.push_back(command);
  }
  check_time();
}

void FleetRules::happened(const model::Event& event) {
  match(
      event.what, [this](const model::MachineJoined& it) { joined(it); },
      [this](const model::MachineGone& it) {
        machines_.at(it.machine.value).is_gone = true;
        for (const auto& [task, held] : held_) {
          expect_of(task, held.site.machine != it.machine,
                    "its end is told before its machine is gone");
        }
      },
      [this](const model::Sampled& it) { machines_.at(it.machine.value).was_read = true; },
      [this](const model::KeeperSilent& it) {
        machines_.at(it.machine.value).is_silent = it.silent;
      },
      [this](const model::AttemptEnded& it) {
        const auto found = held_.find(it.key.task);
        if (found == held_.end() || found->second.key != it.key) return;
        const auto* const not_started = std::get_if<model::NotStarted>(&it.end);
        const bool is_refused = not_started != nullptr && not_started->of_machine;
        if (is_refused && !found->second.told_to_end) refused_ = it.key.task;
        held_.erase(found);
      },
      [](const auto&) {});
}

void FleetRules::joined(const model::MachineJoined& event) {
  Machine there{.capacity = event.capacity};
  if (event.until) {
    const Duration for_ends = policy_.stop_grace + kForNewsOfEnds;
    there.last_term = Instant{event.until->since_start - for_ends};
  }
  expect(event.machine.value <= machines_.size(), "machines are numbered as they join");
  if (complaint_) return;
  if (event.machine.value == machines_.size()) {
    machines_.push_back(std::move(there));
    return;
  }
  Machine& machine = machines_[event.machine.value];
  expect(machine.is_gone, "only a machine that has gone joins again");
  machine = std::move(there);
}

void FleetRules::changed(const model::TaskChanged& change) {
  const model::TaskIndex index = change.key.task;
  expect(index.value < tasks_.size(), "only tasks of the plan change");
  if (complaint_) return;
  Seen& task = tasks_[index.value];
  if (change.status == Status::Init && change.verdict == model::Verdict::None) {
    expect_of(index, !held_.contains(index), "begins anew when nothing of it runs");
    task.status = Status::Init;
    task.verdict = model::Verdict::None;
    return;
  }
  expect_of(index, task.verdict == model::Verdict::None,
            "nothing is said of a task after its verdict");
  const bool stays = change.status == task.status && change.verdict != model::Verdict::None;
  expect_of(index, stays || model::may_follow(task.status, change.status),
            "its status follows an arrow of the picture");
  expect_of(index, change.verdict == model::Verdict::None || !held_.contains(index),
            "a running task has no verdict");
  expect_of(index, refused_ != index || change.verdict == model::Verdict::None,
            "a task does not fail because its machine could not start it");
  task.status = change.status;
  task.verdict = change.verdict;
  // It gives back its CPUs while it waits for its device, and keeps its GPUs if it has some.
  if (change.status != Status::Waiting) return;
  if (const auto found = held_.find(index); found != held_.end()) found->second.promise.cpus = {};
}

bool FleetRules::is_there(model::MachineIndex machine) const {
  return machine.value < machines_.size() && !machines_[machine.value].is_gone;
}

void FleetRules::decided(const model::StartAttempt& command) {
  const model::TaskIndex index = command.key.task;
  expect_of(index, !held_.contains(index), "no two attempts at a task run at once");
  expect_of(index, is_there(command.site.machine), "starts on a machine that is there");
  if (complaint_) return;
  const Machine& machine = machines_[command.site.machine.value];
  expect_of(index, machine.was_read, "starts on a machine that was looked at");
  expect_of(index, !machine.is_silent, "starts on a machine that is not silent");
  expect_of(index, !machine.last_term || now_ < *machine.last_term,
            "starts on a machine that is not taken away in a moment");
  Seen& task = tasks_[index.value];
  expect_of(index, task.attempt == 0 || command.key.attempt == task.attempt + 1,
            "attempts are numbered one by one");
  task.attempt = command.key.attempt;
  held_.insert_or_assign(
      index, Held{.key = command.key, .promise = command.promise, .site = command.site});
  check_book(command.site.machine, index);
}

void FleetRules::decided(const model::GrantDevice& command) {
  concerns(command.key);
  if (complaint_) return;
  Held& held = held_.at(command.key.task);
  expect_of(command.key.task, held.site.machine == command.site.machine,
            "trains where it has loaded");
  held.promise = command.promise;
  held.site = command.site;
  check_book(command.site.machine, command.key.task);
}

void FleetRules::concerns(model::AttemptKey key) {
  const auto found = held_.find(key.task);
  const bool runs = found != held_.end() && found->second.key == key;
  expect_of(key.task, runs, "only what runs is told anything");
  if (runs) expect_of(key.task, is_there(found->second.site.machine), "its machine is there");
}

void FleetRules::ends(model::AttemptKey key) {
  concerns(key);
  if (complaint_) return;
  Held& held = held_.at(key.task);
  held.told_to_end = true;
  const Duration before = plan_.shape_of(key.task).terms.early_signal.before;
  const std::optional<Instant>& last_term = machines_[held.site.machine.value].last_term;
  if (last_term && now_ + before >= *last_term) counts_.count(Fault::EndedBeforeThat);
}

/// A two-phase task that has said its last word ends by itself, or is ended a moment later.
void FleetRules::check_time() {
  for (const auto& [task, held] : held_) {
    const Machine& machine = machines_.at(held.site.machine.value);
    const bool may_run_on = !machine.last_term || now_ < *machine.last_term || machine.is_gone;
    expect_of(task, may_run_on || held.told_to_end || plan_.shape_of(task).terms.two_phase,
              "is told to end before its machine is taken away");
  }
}

/// With the last decision, which is of this task. There is less memory if tasks have more than they
/// were promised: the rules for a single machine check that.
void FleetRules::check_book(model::MachineIndex machine, model::TaskIndex of) {
  const Machine& there = machines_[machine.value];
  const Bytes most = memory_of(there.capacity, policy_);
  const Held& own = held_.at(of);
  expect_of(of, own.promise.memory <= most, "starts where it fits: it has the memory");
  expect_of(of, plan_.shape_of(of).terms.request.cpus <= there.capacity.cpus,
            "starts where it fits: it has the CPUs");
  Bytes memory;
  model::Cpus cpus;
  for (const auto& [task, held] : held_) {
    if (held.site.machine != machine) continue;
    memory += held.promise.memory;
    cpus = cpus + held.promise.cpus;
  }
  expect_of(of, memory <= most, "no byte of a machine is promised twice");
  expect_of(of, cpus <= there.capacity.cpus, "no CPU of a machine is promised twice");
  check_gpus(there, own);
}

void FleetRules::check_gpus(const Machine& there, const Held& own) {
  const model::TaskIndex of = own.key.task;
  const auto& gpus = own.site.gpus;
  expect_of(of, std::set(gpus.begin(), gpus.end()).size() == gpus.size(), "no GPU is given twice");
  for (const model::GpuIndex gpu : gpus) {
    expect_of(of, gpu.value < there.capacity.gpus.size(), "starts where it fits: it has the GPU");
    if (complaint_) return;
    Bytes memory;
    int users = 0;
    bool is_ones_own = false;
    for (const auto& [task, held] : held_) {
      const bool is_here = held.site.machine == own.site.machine;
      if (!is_here || std::ranges::find(held.site.gpus, gpu) == held.site.gpus.end()) continue;
      memory += held.promise.gpu_memory;
      ++users;
      is_ones_own = is_ones_own || model::wants_whole_gpus(held.promise);
    }
    expect_of(of, !is_ones_own || users == 1, "a GPU that is a task's own has nobody else");
    // The data of a late GPU came with a reading, which is not kept here.
    if (there.capacity.gpus[gpu.value].late) continue;
    expect_of(of, memory <= memory_of(there.capacity.gpus[gpu.value], policy_),
              "no part of a GPU is promised twice");
  }
}

void FleetRules::carried_out(const model::Command& command) {
  if (complaint_) return;
  const auto found = std::ranges::find(due_, command);
  // A run that is given up ends what runs without its journal.
  const bool ends = std::holds_alternative<model::StopAttempt>(command) ||
                    std::holds_alternative<model::SignalAttempt>(command);
  if (found == due_.end() && ends && !written_) return;
  expect(found != due_.end(), "only what was decided is carried out, and once");
  if (complaint_) return;
  due_.erase(found);
  match(
      command,
      [this](const model::StartAttempt& it) {
        expect_of(it.key.task, written_, "nothing starts before it is written down");
        expect_of(it.key.task, is_there(it.site.machine),
                  "what is carried out is for a machine that is there");
      },
      [](const auto&) {});
}

/// A start on a machine that was gone before the start was written down has ended instead.
void FleetRules::forget_what_never_was() {
  const auto runs = [this](model::AttemptKey key) {
    const auto found = held_.find(key.task);
    return found != held_.end() && found->second.key == key;
  };
  std::erase_if(due_, [&](const model::Command& command) {
    return match(
        command, [](const model::Answer&) { return false; },
        [&](const auto& it) { return !runs(it.key); });
  });
}

void FleetRules::waits(std::optional<Instant> /*until*/) {
  if (complaint_ || !written_) return;
  forget_what_never_was();
  expect(due_.empty(), "what is written down is carried out before the loop waits");
}

void FleetRules::over(bool gave_up, std::size_t processes_left) {
  if (complaint_) return;
  if (gave_up) {
    counts_.count(Fault::DiskFullTooLong);
    return;
  }
  forget_what_never_was();
  expect(due_.empty(), "all that was decided has been carried out");
  expect(processes_left == 0, "no process outlives the run");
  expect(held_.empty(), "every attempt that was started has ended");
  for (std::uint32_t index = 0; index < tasks_.size(); ++index) {
    const bool before = !plan_.tasks[index].is_open();
    expect_of({index}, before || tasks_[index].verdict != model::Verdict::None, "every task ends");
  }
}

}  // namespace trainyard::sim

#include "run/event_check.h"

#include <algorithm>
#include <variant>

#include <fmt/format.h>

#include "model/plan.h"

namespace trainyard::run {
namespace {

using Fault = std::optional<std::string>;

/// Only what was just decided to be started can be refused.
Fault not_decided(const model::ClaimRefused& refused, const model::Decision& decided) {
  const auto starts = [&decided](model::AttemptKey key) {
    return std::ranges::any_of(decided.commands, [key](const model::Command& command) {
      const auto* const start = std::get_if<model::StartAttempt>(&command);
      const auto* const grant = std::get_if<model::GrantDevice>(&command);
      return (start != nullptr && start->key == key) || (grant != nullptr && grant->key == key);
    });
  };
  for (const model::AttemptKey key : refused.attempts) {
    if (!starts(key)) {
      return fmt::format("attempt {} of task {} was not just decided to be started", key.attempt,
                         key.task.value);
    }
  }
  return std::nullopt;
}

}  // namespace

Fault EventCheck::fault_of(const model::Event& event, const model::Decision& decided) {
  if (const auto* const it = std::get_if<model::MachineJoined>(&event.what)) return look_at(*it);
  if (const auto* const it = std::get_if<model::GpusSampled>(&event.what)) return look_at(*it);
  if (const auto* const it = std::get_if<model::LimitsChanged>(&event.what)) return look_at(*it);
  if (const auto* const it = std::get_if<model::BatchAdded>(&event.what)) return look_at(*it);
  if (const auto* const it = std::get_if<model::AttemptFound>(&event.what)) return look_at(*it);
  if (const auto* const it = std::get_if<model::MachineGone>(&event.what)) {
    Fault fault = no_machine(it->machine);
    if (!fault) machines_[it->machine.value].is_gone = true;
    return fault;
  }
  if (const auto* const it = std::get_if<model::ClaimRefused>(&event.what)) {
    Fault fault = no_machine(it->machine);
    return fault ? fault : not_decided(*it, decided);
  }
  if (const auto* const it = std::get_if<model::Sampled>(&event.what)) {
    return no_machine(it->machine);
  }
  if (const auto* const it = std::get_if<model::KeeperSilent>(&event.what)) {
    return no_machine(it->machine);
  }
  if (const auto* const it = std::get_if<model::NeighboursSeen>(&event.what)) {
    return no_machine(it->machine);
  }
  return std::nullopt;
}

Fault EventCheck::look_at(const model::MachineJoined& joined) {
  const auto index = joined.machine.value;
  if (index > machines_.size()) {
    return fmt::format("machine {} joins, and {} are there", index, machines_.size());
  }
  if (index == machines_.size()) {
    machines_.emplace_back();
  } else if (!machines_[index].is_gone) {
    return fmt::format("machine {} joins, and is there already", index);
  }
  machines_[index] = {.gpus = joined.capacity.gpus.size(), .is_gone = false};
  return std::nullopt;
}

Fault EventCheck::look_at(const model::GpusSampled& reading) const {
  if (Fault fault = no_machine(reading.machine)) return fault;
  const std::size_t there = machines_[reading.machine.value].gpus;
  if (reading.gpus.size() != there) {
    return fmt::format("machine {} has {} GPUs, and {} were read", reading.machine.value, there,
                       reading.gpus.size());
  }
  for (const model::GpuUse& use : reading.uses) {
    if (Fault fault = no_gpu(reading.machine, use.gpu)) return fault;
  }
  for (const model::GpuFound& found : reading.found) {
    if (Fault fault = no_gpu(reading.machine, found.gpu)) return fault;
  }
  return std::nullopt;
}

Fault EventCheck::look_at(const model::LimitsChanged& limits) const {
  if (Fault fault = no_machine(limits.machine)) return fault;
  for (const std::vector<model::GpuIndex>* const gpus : {&limits.drained, &limits.cleared}) {
    for (const model::GpuIndex gpu : *gpus) {
      if (Fault fault = no_gpu(limits.machine, gpu)) return fault;
    }
  }
  return std::nullopt;
}

Fault EventCheck::look_at(const model::AttemptFound& found) const {
  const auto& [machine, gpus] = found.site;
  if (Fault fault = no_machine(machine)) return fault;
  for (const model::GpuIndex gpu : gpus) {
    if (Fault fault = no_gpu(machine, gpu)) return fault;
  }
  return std::nullopt;
}

Fault EventCheck::look_at(const model::BatchAdded& batch) {
  if (batch.plan == nullptr) return "a batch without a plan";
  for (const model::PlannedGroup& group : batch.plan->groups) {
    for (const model::GroupIndex earlier : group.needs_earlier) {
      if (earlier.value < groups_) continue;
      return fmt::format("group '{}' needs group {} of an earlier batch, and {} are there",
                         group.name, earlier.value, groups_);
    }
  }
  groups_ += static_cast<std::uint32_t>(batch.plan->groups.size());
  return std::nullopt;
}

Fault EventCheck::no_machine(model::MachineIndex machine) const {
  if (machine.value < machines_.size()) return std::nullopt;
  return fmt::format("there is no machine {}, only {}", machine.value, machines_.size());
}

Fault EventCheck::no_gpu(model::MachineIndex machine, model::GpuIndex gpu) const {
  const std::size_t there = machines_[machine.value].gpus;
  if (gpu.value < there) return std::nullopt;
  return fmt::format("machine {} has no GPU {}, only {}", machine.value, gpu.value, there);
}

}  // namespace trainyard::run

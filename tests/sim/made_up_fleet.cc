#include "sim/made_up_fleet.h"

#include <string>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/match.h"
#include "sim/agenda.h"
#include "sim/faults.h"
#include "sim/watcher.h"

namespace trainyard::sim {

MadeUpFleet::MadeUpFleet(std::uint64_t seed, const FleetWorkload& workload, World world)
    : world_(world),
      local_joins_(workload.local_joins),
      local_(seed, workload.yard, world, {.joins = workload.local_joins}),
      joined_(workload.local_joins ? 1 : 0) {
  members_.reserve(workload.remotes.size());
  for (const FleetMember& member : workload.remotes) add(seed, member);
}

void MadeUpFleet::add(std::uint64_t seed, const FleetMember& member) {
  const std::uint64_t number = members_.size() + 1;
  Member& made = members_.emplace_back();
  made.agent = std::make_unique<MadeUpAgent>(
      MadeUpAgent::Options{.seed = seed,
                           .number = number,
                           .workload = member.workload,
                           .changes = member.changes,
                           .about_to_start = [this](model::TaskIndex it) { about_to_start(it); }},
      world_);
  made.remote = std::make_unique<MadeUpRemote>(
      MadeUpRemote::Options{.seed = seed ^ (number << 44U),
                            .name = fmt::format("lab{}", number),
                            .lease = member.lease,
                            .allocation = member.allocation,
                            .allocations = member.allocations},
      *made.agent, world_,
      MadeUpRemote::Ears{.tell = [this](model::What what) { local_.hear_of(std::move(what)); },
                         .next_number = [this] { return model::MachineIndex{joined_++}; },
                         .stopped_until = [this] { return local_.stopped_until(); }});
  for (const LinkTrouble& trouble : member.troubles) plan(made, trouble);
  world_.agenda.at(member.connects_at, [this, &made, late = member.connects_at > Instant{}] {
    if (late) world_.counts.count(Fault::MachineJoinsLate);
    made.remote->connect();
  });
  if (!member.leaves_at) return;
  world_.agenda.at(*member.leaves_at, [this, &made] {
    world_.counts.count(Fault::MachineLeaves);
    made.remote->leave_for_good();
  });
}

void MadeUpFleet::plan(Member& member, const LinkTrouble& trouble) {
  world_.agenda.at(trouble.at, [&member, trouble] {
    switch (trouble.kind) {
      case LinkTrouble::Kind::Split:
        return member.remote->split(trouble.lasts);
      case LinkTrouble::Kind::Cut:
        return member.remote->cut();
      case LinkTrouble::Kind::KillAgent:
        return member.agent->die(false);
      case LinkTrouble::Kind::Reboot:
        return member.agent->die(true);
    }
  });
}

std::size_t MadeUpFleet::processes() const {
  std::size_t all = local_.processes();
  for (const Member& member : members_) all += member.agent->machine().processes();
  return all;
}

/// Null: it is for the machine of the yard.
MadeUpRemote* MadeUpFleet::remote_for(const model::Command& command) {
  const auto on = [this](model::MachineIndex machine) -> MadeUpRemote* {
    for (const Member& member : members_) {
      if (member.remote->is(machine)) return member.remote.get();
    }
    return nullptr;
  };
  const auto of = [this](model::AttemptKey key) -> MadeUpRemote* {
    for (const Member& member : members_) {
      if (member.remote->runs(key)) return member.remote.get();
    }
    return nullptr;
  };
  return match(
      command, [&](const model::StartAttempt& it) { return on(it.site.machine); },
      [&](const model::GrantDevice& it) { return on(it.site.machine); },
      [](const model::Answer&) -> MadeUpRemote* { return nullptr; },
      [&](const auto& it) { return of(it.key); });
}

void MadeUpFleet::carry_out(const model::Command& command) {
  MadeUpRemote* const remote = remote_for(command);
  if (remote != nullptr) {
    world_.watcher.carried_out(command);
    return remote->carry_out(command);
  }
  if (const auto* const start = std::get_if<model::StartAttempt>(&command)) {
    about_to_start(start->key.task);
    if (!local_joins_) world_.watcher.complain("a task is started where there is no machine");
  }
  local_.carry_out(command);
}

/// On whichever machine.
void MadeUpFleet::about_to_start(model::TaskIndex task) {
  bool runs = local_.has(task);
  for (const Member& member : members_) runs = runs || member.agent->machine().has(task);
  if (!runs) return;
  world_.watcher.complain(
      fmt::format("task {} is started while an attempt before still runs somewhere", task.value));
}

}  // namespace trainyard::sim

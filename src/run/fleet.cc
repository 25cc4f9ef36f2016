#include "run/fleet.h"

#include <algorithm>
#include <cstddef>
#include <variant>

#include "base/match.h"

namespace trainyard::run {

void Fleet::begin(bool local_joins, std::function<void(const std::string&)> note) {
  if (remotes_ == nullptr) return;
  first_ = local_joins ? 1 : 0;
  local_.look_first();
  ears_ = {.tell = [this](model::What what) { local_.hear_of(std::move(what)); },
           .note = std::move(note),
           .now = [this] { return local_.now(); }};
  for (std::size_t i = 0; i < remotes_->count(); ++i) join(remotes_->at(i));
  remotes_->on_added([this](RemoteMachine& machine) { join(machine); });
}

bool Fleet::has_found_attempts() const {
  return std::ranges::any_of(joined_, [](const RemoteMachine* it) { return !it->found().empty(); });
}

void Fleet::go_on() {
  std::vector<RemoteMachine*> with_some = joined_;
  std::erase_if(with_some, [](const RemoteMachine* it) { return it->found().empty(); });
  for (RemoteMachine* const it : with_some) it->tell_what_goes_on(it != with_some.back());
  for (RemoteMachine* const it : with_some) it->tell_what_became_of_it();
}

void Fleet::is_written() {
  for (RemoteMachine* const it : joined_) it->is_written();
}

Fleet::~Fleet() {
  if (remotes_ != nullptr) remotes_->on_added(nullptr);
}

void Fleet::join(RemoteMachine& machine) {
  machine.join_when_ready(
      [this, &machine] {
        joined_.push_back(&machine);
        return model::MachineIndex{first_ + static_cast<std::uint32_t>(joined_.size() - 1)};
      },
      ears_);
}

RemoteMachine* Fleet::machine_of(model::MachineIndex machine) {
  if (remotes_ == nullptr || machine.value < first_) return nullptr;
  return joined_.at(machine.value - first_);
}

RemoteMachine* Fleet::machine_of(model::AttemptKey key) {
  for (std::size_t i = 0; remotes_ != nullptr && i < remotes_->count(); ++i) {
    if (remotes_->at(i).runs(key)) return &remotes_->at(i);
  }
  return nullptr;
}

void Fleet::carry_out(const model::Command& command) {
  RemoteMachine* const remote = match(
      command, [this](const model::StartAttempt& it) { return machine_of(it.site.machine); },
      [this](const model::GrantDevice& it) { return machine_of(it.site.machine); },
      [](const model::Answer&) -> RemoteMachine* { return nullptr; },
      [this](const auto& it) { return machine_of(it.key); });
  if (remote == nullptr) return local_.carry_out(command);
  const auto* const starts = std::get_if<model::StartAttempt>(&command);
  if (starts != nullptr) return start(*remote, *starts);
  remote->carry_out(command);
}

/// The devices are those of its machine; there they have the same numbers.
void Fleet::start(RemoteMachine& machine, const model::StartAttempt& command) {
  // An earlier execution has, and it goes on.
  if (machine.has_started_before(command.key)) return;
  model::Grant given = machine.grant();
  given.memory_max = command.gpu_memory_max;
  for (const model::GpuIndex gpu : command.site.gpus) {
    given.gpus.push_back(given.of_machine.at(gpu.value));
  }
  model::Launch launch = launch_(command.key, given);
  if (!launch.cannot_start.empty()) {
    return local_.hear_of(model::AttemptEnded{
        .key = command.key, .end = model::NotStarted{.why = std::move(launch.cannot_start)}});
  }
  machine.start(command, std::move(launch));
}

/// Only on the machine of the yard are its neighbours asked.
std::optional<model::ClaimRefused> Fleet::claim(const Claim& claim) {
  if (remotes_ == nullptr) return local_.claim(claim);
  if (first_ == 0) return std::nullopt;
  model::Decision here{.changes = {}, .commands = {}};
  for (const model::Command& command : claim.decided.commands) {
    const bool is_remote = match(
        command,
        [this](const model::StartAttempt& it) { return machine_of(it.site.machine) != nullptr; },
        [this](const model::GrantDevice& it) { return machine_of(it.site.machine) != nullptr; },
        [](const auto&) { return false; });
    if (!is_remote) here.commands.push_back(command);
  }
  return local_.claim({.decided = here, .left = claim.left, .at = claim.at, .round = claim.round});
}

}  // namespace trainyard::run

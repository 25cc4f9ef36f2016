#include "cli/seen_machines.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/fingerprint.h"
#include "cli/code_sync.h"
#include "cli/version.h"
#include "hardware/this_machine.h"
#include "model/elsewhere.h"
#include "run/machine_look.h"
#include "settings/configuration.h"
#include "settings/machine_entries.h"
#include "sys/files.h"
#include "wire/agent.h"

namespace trainyard::cli {
namespace {

SeenMachine seen_of(const run::RemoteMachine& remote) {
  SeenMachine seen{.name = remote.name(), .wrong = remote.failure()};
  if (remote.hello() == nullptr) {
    if (seen.wrong.empty()) seen.wrong = "no response";
    return seen;
  }
  seen.host = remote.hello()->host;
  seen.program = remote.hello()->program;
  seen.capacity = remote.hello()->capacity;
  seen.clock_ahead = remote.clock_ahead();
  return seen;
}

/// By the name that people know it by in a run.
model::NamedMachine named(const SeenMachine& seen) {
  return {.name = seen.name == kLocal ? seen.host : seen.name, .capacity = seen.capacity};
}

}  // namespace

bool SeenMachine::will_do() const {
  return wrong.empty() && std::ranges::none_of(checks, [](const MachineCheck& each) {
           return each.state == MachineCheck::State::Bad;
         });
}

MachineLookout::MachineLookout(std::vector<run::RemoteMachine::Options> ways, bool local_too) {
  // The problems of each are read below.
  static_cast<void>(remotes_.connect(std::move(ways)));
  for (std::size_t i = 0; i < remotes_.count(); ++i) all_.push_back(seen_of(remotes_.at(i)));
  // This one last, as it takes no time.
  if (local_too) {
    all_.push_back({.name = std::string(kLocal),
                    .host = sys::host_name(),
                    .program = kProgram,
                    .capacity = hardware::find_this_machine().reading.capacity});
  }
}

std::vector<model::NamedMachine> MachineLookout::machines() const {
  std::vector<model::NamedMachine> found;
  for (const SeenMachine& seen : all_) {
    if (seen.wrong.empty()) found.push_back(named(seen));
  }
  return found;
}

model::Capacity MachineLookout::capacity() const { return model::most_of({}, machines()); }

/// The question for a machine. The job file itself need not exist on a machine to which it is not
/// copied.
MachineQuestion MachineLookout::question_for(std::size_t index, const job::Job* job,
                                             const JobGround& ground) const {
  const bool is_other = index < remotes_.count();
  const model::Elsewhere elsewhere =
      is_other ? remotes_.at(index).grant().elsewhere : model::Elsewhere();
  if (job == nullptr) return question_about(ground.directory, elsewhere);
  const model::NamedMachine machine = named(all_[index]);
  MachineQuestion question = question_about(
      {.job = *job, .machine = machine, .elsewhere = elsewhere, .with_imports = true});
  if (!elsewhere.work.there.empty()) return question;
  Fingerprint print;
  print.add(job->text());
  question.look.file = job->paths().file;
  question.look.file_print = print.value();
  return question;
}

void MachineLookout::add_checks_of_entry(SeenMachine& machine, const JobGround& ground,
                                         const std::vector<NotBrought>& not_brought) const {
  for (const settings::MachineEntry& said : settings::machines(ground.configuration)) {
    if (said.host != machine.name) continue;
    if (auto limits = check_of_limits(said, machine.capacity)) {
      machine.checks.push_back(std::move(*limits));
    }
    if (said.directory.empty()) continue;
    const auto failed = std::ranges::find_if(not_brought, [&said](const NotBrought& it) {
      return it.host == said.host && it.what == kCode;
    });
    machine.checks.push_back(check_of_sync(failed == not_brought.end() ? "" : failed->why));
  }
}

std::vector<SeenMachine> MachineLookout::look(const job::Job* job, const JobGround& ground,
                                              const std::vector<NotBrought>& not_brought) {
  std::vector<MachineQuestion> questions;
  std::vector<wire::AgentLook> looks;
  for (std::size_t i = 0; i < all_.size(); ++i) {
    questions.push_back(question_for(i, job, ground));
    looks.push_back(questions.back().look);
  }
  std::vector<wire::AgentLook> others(
      looks.begin(), looks.begin() + static_cast<std::ptrdiff_t>(remotes_.count()));
  // The problems of each are read below.
  static_cast<void>(remotes_.look(std::move(others)));
  const std::optional<MachineCheck> tasks =
      job != nullptr ? check_of_tasks(*job, machines()) : std::nullopt;
  std::vector<SeenMachine> all = all_;
  for (std::size_t i = 0; i < all.size(); ++i) {
    SeenMachine& machine = all[i];
    if (!machine.wrong.empty()) {
      // The reason why its agent could not be copied is nearer to the cause than that it is
      // missing.
      const auto failed = std::ranges::find(not_brought, machine.name, &NotBrought::host);
      if (failed != not_brought.end()) machine.wrong = text_of(*failed);
      continue;
    }
    const bool is_other = i < remotes_.count();
    wire::AgentSeen seen;
    if (is_other && remotes_.at(i).seen() == nullptr) {
      machine.wrong = remotes_.at(i).failure();
      if (machine.wrong.empty()) machine.wrong = "no answer to the check of the machine";
      continue;
    }
    seen = is_other ? *remotes_.at(i).seen() : run::look_at_machine(looks[i]);
    machine.disk_free = seen.disk_free;
    machine.checks = checks_of(questions[i], seen);
    machine.checks.push_back(check_of_gpus(machine.capacity));
    if (tasks) machine.checks.push_back(*tasks);
    add_checks_of_entry(machine, ground, not_brought);
    if (is_other) machine.checks.push_back(check_of_clock(machine.clock_ahead));
  }
  return all;
}

}  // namespace trainyard::cli

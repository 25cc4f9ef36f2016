// The machines where the tasks of a run run: reached before it begins, by ssh.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/host_programs.h"
#include "job/job.h"
#include "model/resources.h"
#include "run/allocated_machines.h"
#include "run/machine_keys.h"
#include "run/remote_machine.h"
#include "run/remote_machines.h"
#include "settings/configuration.h"

namespace trainyard::cli {

/// What people call the machine that a run is started on.
inline constexpr std::string_view kLocal = "local";

struct RunMachines {
  /// The keys of the agents that were left by an earlier execution whose process has died.
  [[nodiscard]] std::vector<std::string> keys_of_others() const;

  std::vector<std::string> names;  ///< Of the others, as they are called.
  bool runs_here = true;
  std::unique_ptr<run::RemoteMachines> remotes;       ///< Nothing: none.
  std::unique_ptr<run::AllocatedMachines> allocated;  ///< Those of them that Slurm was asked for.

  /// What a job is made for: the most that any of them has. `here` counts where tasks run here.
  [[nodiscard]] model::Capacity capacity(const model::Capacity& here) const;
  /// All of them, by the names that people read.
  [[nodiscard]] std::vector<model::NamedMachine> all(const model::Capacity& here) const;
};

/// Whether this machine is one of those that a configuration names.
bool runs_here(const settings::Configuration& configuration);
/// Whether a configuration names no machine but this one, and all of it.
bool runs_only_here(const settings::Configuration& configuration);

/// What is known of a job before there are machines to make it for.
struct JobGround {
  settings::Configuration configuration;
  std::string directory;  ///< Where its file lies, or its command was typed; absolute.
  /// The keys of the agents of an execution that has died; the run resumes with these agents.
  run::MachineKeys keys = {};
};

/// What leads to each other machine that a configuration names, in order: ssh, and srun to the
/// nodes of the allocation that "slurm" stands for, which must be there.
Result<std::vector<run::RemoteMachine::Options>> ways_to_machines(const JobGround& ground);

/// Whether Slurm is asked for nodes: in an allocation a run takes what that has.
bool asks_slurm(const settings::Configuration& configuration);

/// Brings to the machines what a run needs there before their agents: trainyard itself, and code.
Result<std::vector<NotBrought>> equip_machines(const JobGround& ground);

/// Whether reaching them is more than that, as somebody waits, or something is written there: the
/// job is looked at before.
bool takes_more_than_a_look(const settings::Configuration& configuration);

/// Reaches all that the configuration names, while `is_wanted` says so. An error names each that
/// cannot be reached.
Result<RunMachines> reach_machines(const JobGround& ground, const std::function<bool()>& is_wanted);

/// Whether the machines will do for the job, whose tasks each fit on one of them, and have what
/// these need there. An error says what does not.
Result<void> check_machines(const RunMachines& machines, const job::Job& job,
                            const model::Capacity& here);

/// Tells the agents which run it is: its directory is there, and ours.
Result<void> begin_on_machines(const RunMachines& machines, const job::Job& job);

}  // namespace trainyard::cli

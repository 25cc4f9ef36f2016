// The machines where the tasks of a run run: reached before it begins, by ssh or by Slurm.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "cli/host_programs.h"
#include "job/job.h"
#include "journal/reader.h"
#include "model/resources.h"
#include "run/allocated_machines.h"
#include "run/allocation.h"
#include "run/machine_keys.h"
#include "run/remote_machine.h"
#include "run/remote_machines.h"
#include "settings/configuration.h"

namespace trainyard::cli {

/// The name of all nodes of the present allocation of Slurm in a list of machines.
inline constexpr const char* kSlurm = "slurm";

/// The name for people of the machine that a run is started on.
inline constexpr std::string_view kLocal = "local";
/// The word for the code in messages about copying it.
inline constexpr std::string_view kCode = "the code";

struct RunMachines {
  /// The keys of the agents that were left by an earlier execution whose process has died.
  [[nodiscard]] std::vector<std::string> keys_of_others() const;

  std::vector<std::string> names;  ///< The names of the other machines.
  bool runs_here = true;
  std::unique_ptr<run::RemoteMachines> remotes;       ///< Nothing: none.
  std::unique_ptr<run::AllocatedMachines> allocated;  ///< The machines that were requested from
                                                      ///< Slurm.

  /// The capacity that a job is made for: the most that any of the machines has. `here` counts if
  /// tasks run here.
  [[nodiscard]] model::Capacity capacity(const model::Capacity& here) const;
  /// All of them, by the names that people read.
  [[nodiscard]] std::vector<model::NamedMachine> all(const model::Capacity& here) const;
};

/// Whether this machine is one of those that a configuration names.
bool runs_here(const settings::Configuration& configuration);
/// Whether a configuration names only this machine, and all of it.
bool runs_only_here(const settings::Configuration& configuration);

/// The facts about a job before there are machines to make it for.
struct JobGround {
  settings::Configuration configuration;
  std::string directory;  ///< The directory of its file, or where its command was typed; absolute.
  /// The keys of the agents of an execution that has died; the run resumes with these agents.
  run::MachineKeys keys = {};
};

/// The way to each other machine that a configuration names, in order: ssh, and srun to the nodes
/// of the allocation that "slurm" stands for, which must exist.
Result<std::vector<run::RemoteMachine::Options>> ways_to_machines(const JobGround& ground);

/// Whether nodes are requested from Slurm: inside an allocation a run takes its nodes.
bool asks_slurm(const settings::Configuration& configuration);

/// Brings to the machines what a run needs there before their agents: trainyard itself, and code.
Result<std::vector<NotBrought>> equip_machines(const JobGround& ground);

/// Whether reaching the machines is more than a look, as somebody waits, or files are written
/// there: the job is checked first.
bool takes_more_than_a_look(const settings::Configuration& configuration);

/// Reaches all that the configuration names, while `is_wanted` says so. An error names each that
/// cannot be reached.
Result<RunMachines> reach_machines(const JobGround& ground, const std::function<bool()>& is_wanted);

/// Whether the machines are sufficient for the job: each task fits on one of them, and they have
/// what the tasks need. An error names what is missing.
Result<void> check_machines(const RunMachines& machines, const job::Job& job,
                            const model::Capacity& here);

/// Tells the agents which run it is: its directory is there, and ours.
Result<void> begin_on_machines(const RunMachines& machines, const job::Job& job);

/// The time that tasks of an execution may still run on their agents if it died at `last`; zero or
/// less if it has ended or has no agents.
Duration time_left_for_tasks(const std::string& run_directory,
                             const journal::ExecutionRow& execution, Instant last);

/// Tasks of a dead execution on machines that are not among `here` may run on until their lease is
/// over: waits for that, and says so. On the others their agents stop them. The run must have begun.
/// An error if its journal cannot be read.
Result<void> wait_for_earlier_machines(const std::string& run_directory, const RunMachines& here);

}  // namespace trainyard::cli

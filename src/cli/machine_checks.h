// Checks of a machine before a run begins there: the questions for the one that looks
// (run/machine_look.h), and the text about the answers.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"
#include "cli/run_machines.h"
#include "job/job.h"
#include "model/launch.h"
#include "model/resources.h"
#include "settings/machine_entries.h"
#include "wire/agent.h"

namespace trainyard::cli {

struct MachineCheck {
  enum class State : std::uint8_t { Good, Warning, Bad };

  std::string_view name;  ///< "programs"
  State state = State::Good;
  std::string says;  ///< The reason, or the finding.
};

/// "ok", "!!" or "NO".
std::string_view word_of(MachineCheck::State state);

/// The question for a machine, and the limits for its answer.
struct MachineQuestion {
  wire::AgentLook look;
  std::vector<job::ProgramOfTasks> programs;  ///< In their order there.
  Bytes disk_needed;                          ///< By one task.
  Bytes log_max;                              ///< The maximum size of a log; 0: any.
};

/// Without a job: whether a run could have this directory there, which may have to be made. On a
/// machine with its own directories: whether that of the code exists, and is writable.
MachineQuestion question_about(const std::string& directory, const model::Elsewhere& elsewhere);
/// A question about the tasks of the job that fit on the machine. It includes the modules that they
/// import if `with_imports` is set, as importing may take seconds.
struct JobQuestion {
  const job::Job& job;
  const model::NamedMachine& machine;
  /// The place of the code there, if it is not the same directory.
  const model::Elsewhere& elsewhere;
  bool with_imports = false;
};
MachineQuestion question_about(const JobQuestion& asked);

/// The answer: directory, programs, imports if requested, disk.
std::vector<MachineCheck> checks_of(const MachineQuestion& question, const wire::AgentSeen& seen);

/// Whether the code was copied to the machine. `why` is the reason if it was not; empty if it was.
MachineCheck check_of_sync(const std::string& why);
/// The GPUs of a machine.
MachineCheck check_of_gpus(const model::Capacity& capacity);
/// The reason why tasks of the job fit on none of these machines; nothing if each fits on one.
std::optional<MachineCheck> check_of_tasks(const job::Job& job,
                                           const std::vector<model::NamedMachine>& machines);
/// Whether a machine has the resources that the configuration names; nothing if it names none.
std::optional<MachineCheck> check_of_limits(const settings::MachineEntry& said,
                                            const model::Capacity& capacity);
/// The time that the machine's clock is ahead of ours.
MachineCheck check_of_clock(Duration ahead);

struct MissingProgram {
  std::string text;          ///< With one task that runs it and where that starts.
  bool comes_later = false;  ///< All its tasks wait for others, which may make it.
};

/// The programs of the job that this machine lacks, and the missing scripts of its interpreters.
/// Nothing if the run has other machines, which may have them. `only` as for job::Job::programs().
std::vector<MissingProgram> missing_programs(const job::Job& job,
                                             const std::set<std::string>& only = {});

/// Before the first task of a run: whether the machines have its directory, the programs of the
/// tasks, and room on the disk. An error lists the missing parts of each.
Result<void> look_before_run(const RunMachines& machines, const job::Job& job,
                             const model::Capacity& here);

}  // namespace trainyard::cli

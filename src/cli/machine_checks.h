// What is looked at on a machine before a run begins there: what is asked of whoever looks
// (run/machine_look.h), and what people read of what was seen.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"
#include "cli/run_machines.h"
#include "job/job.h"
#include "job/sought_programs.h"
#include "model/elsewhere.h"
#include "model/resources.h"
#include "settings/machine_entries.h"
#include "wire/agent.h"

namespace trainyard::cli {

struct MachineCheck {
  enum class State : std::uint8_t { Good, Warning, Bad };

  std::string_view name;  ///< "programs"
  State state = State::Good;
  std::string says;  ///< Why, or what was found.
};

/// "ok", "!!" or "NO".
std::string_view word_of(MachineCheck::State state);

/// What a machine is asked, and what its answer is held against.
struct MachineQuestion {
  wire::AgentLook look;
  std::vector<job::ProgramOfTasks> programs;  ///< In their order there.
  Bytes disk_needed;                          ///< By one task.
  Bytes log_max;                              ///< What a log may take; 0: any amount.
};

/// Without a job: whether a run could have this directory there, which may have to be made. On a
/// machine with directories of its own: whether that of the code is there, and may be written.
MachineQuestion question_about(const std::string& directory, const model::Elsewhere& elsewhere);
/// A question about the tasks of the job that fit on the machine. It includes the modules that they
/// import if `with_imports` is set, as importing may take seconds.
struct JobQuestion {
  const job::Job& job;
  const model::NamedMachine& machine;
  /// Where the code is there, where that is not the same directory.
  const model::Elsewhere& elsewhere;
  bool with_imports = false;
};
MachineQuestion question_about(const JobQuestion& asked);

/// The answer: directory, programs, imports where they were asked for, disk.
std::vector<MachineCheck> checks_of(const MachineQuestion& question, const wire::AgentSeen& seen);

/// Whether the code was copied to the machine. `why` is the reason if it was not; empty if it was.
MachineCheck check_of_sync(const std::string& why);
/// The GPUs of a machine.
MachineCheck check_of_gpus(const model::Capacity& capacity);
/// Why tasks of the job fit on none of these machines; nothing where each fits on one.
std::optional<MachineCheck> check_of_tasks(const job::Job& job,
                                           const std::vector<model::NamedMachine>& machines);
/// Whether a machine has what of it is to be used, as somebody wrote it; nothing where nobody did.
std::optional<MachineCheck> check_of_limits(const settings::MachineEntry& said,
                                            const model::Capacity& capacity);
/// How much a clock on the wall is before ours.
MachineCheck check_of_clock(Duration ahead);

struct MissingProgram {
  std::string text;          ///< With one task that runs it and where that starts.
  bool comes_later = false;  ///< All its tasks wait for others, which may make it.
};

/// The programs of the job that this machine lacks, and the scripts that are not there for its
/// interpreters. Nothing where the run has other machines, which may have them.
std::vector<MissingProgram> missing_programs(const job::Job& job);

/// Before the first task of a run: whether the machines have its directory, the programs of the
/// tasks, and room on the disk. An error says for each what is not there.
Result<void> look_before_run(const RunMachines& machines, const job::Job& job,
                             const model::Capacity& here);

}  // namespace trainyard::cli

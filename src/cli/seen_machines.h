// A look at the machines of a run without running anything: `trainyard machines`.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "cli/host_programs.h"
#include "cli/machine_checks.h"
#include "cli/run_machines.h"
#include "job/job.h"
#include "model/resources.h"
#include "run/remote_machine.h"
#include "run/remote_machines.h"

namespace trainyard::cli {

struct SeenMachine {
  std::string name;
  std::string host;     ///< The machine's own name.
  std::string program;  ///< The program that answers there.
  model::Capacity capacity;
  std::string wrong;  ///< The reason why it cannot be checked; empty: it was.
  Duration clock_ahead{0};
  Bytes disk_free;
  std::vector<MachineCheck> checks;

  [[nodiscard]] bool will_do() const;
};

/// Reaches the machines, and queries their resources: nothing of it stays there afterwards.
class MachineLookout {
 public:
  /// Waits until all have answered, or cannot.
  MachineLookout(std::vector<run::RemoteMachine::Options> ways, bool local_too);

  /// The machines that answer, with this one last if it is among them.
  [[nodiscard]] std::vector<model::NamedMachine> machines() const;
  /// The capacity that a job is made for: the most that any of them has.
  [[nodiscard]] model::Capacity capacity() const;

  /// All machines, with the checks for a job; null: for any run on this ground. Things that could
  /// not be copied are reported with their machine.
  [[nodiscard]] std::vector<SeenMachine> look(const job::Job* job, const JobGround& ground,
                                              const std::vector<NotBrought>& not_brought);

 private:
  [[nodiscard]] MachineQuestion question_for(std::size_t index, const job::Job* job,
                                             const JobGround& ground) const;
  void add_checks_of_entry(SeenMachine& machine, const JobGround& ground,
                           const std::vector<NotBrought>& not_brought) const;

  run::RemoteMachines remotes_;
  std::vector<SeenMachine> all_;
};

}  // namespace trainyard::cli

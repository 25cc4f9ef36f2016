// The machines that a run would have, looked at without running anything: `trainyard machines`.
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
  std::string host;     ///< As it calls itself.
  std::string program;  ///< What answers there.
  model::Capacity capacity;
  std::string wrong;  ///< Why it cannot be looked at; empty: it was.
  Duration clock_ahead{0};
  Bytes disk_free;
  std::vector<MachineCheck> checks;

  [[nodiscard]] bool will_do() const;
};

/// Reaches them, and asks them for what they have: nothing of them stays when it is gone.
class MachineLookout {
 public:
  /// Waits until all have answered, or cannot.
  MachineLookout(std::vector<run::RemoteMachine::Options> ways, bool local_too);

  /// Those that answer, with this one last where it is one of them.
  [[nodiscard]] std::vector<model::NamedMachine> machines() const;
  /// What a job is made for: the most that any of them has.
  [[nodiscard]] model::Capacity capacity() const;

  /// All of them, with what is there of a job; null: of any run on this ground. What could not be
  /// brought is told with its machine.
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

// The machines of a run as rows: those that joined each execution, their GPUs, and their names as
// attempts have them.
//
// Writes inside a transaction that the caller begins and ends. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "journal/sqlite.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/resources.h"

namespace trainyard::journal {

/// The names of these GPUs for users, in their order: "0", "0:1".
std::vector<std::string> labels_of(const std::vector<model::Gpu>& gpus);

/// These are all that tasks of the execution may have of the machine.
Result<void> put_gpus(Database& database, std::int64_t execution, model::MachineIndex machine,
                      const std::vector<model::Gpu>& gpus);

class MachineTable {
 public:
  /// `database` must outlive it and stay where it is.
  static Result<MachineTable> open(Database& database, std::int64_t execution);

  /// A machine that was there before gets its old row, with its present data.
  Result<void> join(Instant at, const model::MachineJoined& joined);
  Result<void> leave(Instant at, const model::MachineGone& gone);
  /// The keeper or agent there has fallen silent, or answers again.
  Result<void> hear(Instant at, const model::KeeperSilent& keeper);
  /// The data of one of its GPUs that answered late.
  Result<void> find(model::MachineIndex machine, const model::GpuFound& found);

 private:
  struct Statements {
    Statement put;
    Statement gone;
    Statement silent;
    Statement gpu_found;
  };
  MachineTable(Database& database, std::int64_t execution, Statements statements)
      : database_(&database), execution_(execution), statements_(std::move(statements)) {}

  Database* database_;
  std::int64_t execution_;
  Statements statements_;
};

/// The machines on which attempts ran, by their rows. The number of a machine counts within an
/// execution, which is found by its start.
class KnownMachines {
 public:
  static Result<KnownMachines> read(Database& database);

  /// Empty where no machine of this number had joined.
  [[nodiscard]] std::string name(Instant started, std::int64_t machine) const;

 private:
  struct OfExecution {
    Instant since;
    std::map<std::int64_t, std::string> names;  ///< By number.
  };
  std::vector<OfExecution> executions_;  ///< In their order.
};

}  // namespace trainyard::journal

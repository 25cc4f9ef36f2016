// The machines for which `trainyard plan` forecasts a run: this machine, or machines that only the
// command line describes. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "model/event.h"
#include "model/plan.h"
#include "model/resources.h"
#include "report/plan_report.h"

namespace trainyard::app {

struct MachineWords {
  std::vector<std::string> gpus = {};      ///< "4x24GB"; each is a machine, and all are compared.
  std::vector<std::string> machines = {};  ///< "8x(4x80GB, 64 CPUs)": the same, of several.
  std::string memory = {};                 ///< "64GB"; empty: that of this machine, like `cpus`.
  std::string cpus = {};                   ///< "16"

  /// Whether the forecast is for this machine, without other GPUs or machines.
  [[nodiscard]] bool is_for_here() const { return gpus.empty() && machines.empty(); }
};

/// One machine on which the run is simulated, or several.
struct PlannedMachines {
  std::string name;
  std::vector<report::PlannedKind> kinds;
  std::string host = {};    ///< The name of this machine; empty: the command line describes them.
  std::string silent = {};  ///< "GPU 1 DOES NOT ANSWER, and is left out here"; empty: all do.
  /// The present use of this machine's GPUs, which is assumed to stay. Empty: there is none.
  std::vector<model::GpuReading> others = {};

  /// One machine of each kind.
  [[nodiscard]] std::vector<model::NamedMachine> one_of_each() const;
  [[nodiscard]] std::vector<model::NamedMachine> all() const;
  /// The largest amount of each resource that any of them has.
  [[nodiscard]] model::Capacity most() const;
};

/// This machine as it is now.
struct MachineNow {
  std::string host;
  model::Capacity capacity;
  std::vector<model::GpuReading> others = {};  ///< See PlannedMachines::others.
};

/// The machines of the words, or this machine. Amounts without a word are those of this machine,
/// whose limit on processes does not count. Its GPUs that have never answered are left out.
Result<std::vector<PlannedMachines>> planned_machines(const MachineWords& words,
                                                      const MachineNow& now);

/// "4x24GB": a machine with these GPUs has enough of them for each task of the plan, with a margin.
std::string gpus_for(const model::Plan& plan);

/// Advice that follows the error of a run that waits forever, if others use the GPUs there: the
/// command that assumes free GPUs. Else empty.
std::string advice_on_others(const std::string& job_file, const PlannedMachines& machines);

}  // namespace trainyard::app

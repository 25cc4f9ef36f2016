// The machine that the program finds itself on: what it may use of it, and who looks at its GPUs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "hardware/capacity.h"
#include "hardware/gpu_watch.h"
#include "model/resources.h"

namespace trainyard::hardware {

struct ThisMachine {
  CapacityReading reading;       ///< With its GPUs.
  std::optional<GpuWatch> gpus;  ///< Nothing where there are none.
  /// By which a program sees none, where all are left out: NAME=value. Where one is there who
  /// starts it says which it sees.
  std::vector<std::string> hiding;
};

/// The most of the machine that may be used, as configured.
struct MachineLimits {
  std::optional<model::Cpus> cpus = std::nullopt;
  std::optional<Bytes> memory = std::nullopt;
  std::optional<std::vector<std::string>> gpus = std::nullopt;  ///< As GpuSources::only.
};

/// Looks now. Forks the process that looks at the GPUs: there should be no other thread yet.
ThisMachine find_this_machine(const MachineLimits& limits = {});

}  // namespace trainyard::hardware

// The parts of a simulated run: a plan, limits, a machine to run it on, and the troubles that will
// come, all from one seed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "model/plan.h"
#include "model/resources.h"
#include "sim/behaviour.h"

namespace trainyard::sim {

/// An event around the tasks, with its time.
struct Trouble {
  enum class Kind : std::uint8_t {
    LoseMemory,
    SqueezeMemory,  ///< Others take nearly all that is left.
    UseCpu,
    DelaySamples,
    JumpClock,
    FillDisk,
    LoseGpu,
    LoseGpuMemory,
    NameNobody,
    KillMany,
    KillKeeper,
    KillGuard,
    SilenceKeeper,
    StopYard,
    Interrupt,
    AskToKill,
    RefuseStarts  ///< For all tasks, or for one in four, as if only their disk fails.
  };
  Kind kind = Kind::LoseMemory;
  Instant at;
  Duration lasts{0};
  Bytes memory;
  double cpu_share = 0;
  /// The GPU that is lost, or the tasks whose starts are refused. 0: all; 1: the first of four; 2:
  /// the second, and so on.
  std::uint64_t which = 0;

  friend bool operator==(const Trouble&, const Trouble&) = default;
};

/// A part of the plan, and when it is added to the run.
struct Addition {
  Instant at;
  std::shared_ptr<const model::Plan> plan;
};

/// The room of the disk on which all of them write.
constexpr Bytes kDiskOfAll = gb(100);

struct Workload {
  model::Plan plan;                 ///< The whole, as it is in the end.
  std::vector<Addition> additions;  ///< In order; the first is there when the run begins.
  model::Policy policy;
  model::Capacity capacity;      ///< As it is known when the run begins.
  std::vector<model::Gpu> gpus;  ///< As they are.
  /// The time when each late GPU answers; by GPU.
  std::vector<std::optional<Instant>> answer_at;
  Odds odds;
  Duration longest{0};            ///< The maximum time of one attempt.
  Duration patience{0};           ///< Time for which the loop goes on without its journal.
  std::vector<Trouble> troubles;  ///< In no order.
};

/// At least 30 tasks in at least 3 groups; every shape fits into the machine when it is empty.
Workload make_workload(std::uint64_t seed);

}  // namespace trainyard::sim

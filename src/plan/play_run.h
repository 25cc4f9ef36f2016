// Plays a run through in no time: the real scheduler and the real loop on machines where tasks
// load, train and end as they are expected to, and nothing else goes wrong. What `trainyard plan`
// forecasts with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/waiting.h"

namespace trainyard::plan {

/// The work of a task, the same in each of its attempts.
struct Course {
  Duration load{0};
  Duration train{0};
  Bytes memory;  ///< That it takes of the host, at once.
  /// The part of a GPU that keeps it busy when it is alone there, in thousandths. Where those of a
  /// GPU want more than it is, all of them go slower; 0: it slows nobody down.
  int gpu_share = 0;
  Bytes gpu_memory;  ///< That it takes on each of its GPUs,
  Duration gpu_after{
      0};  ///< so long after it has begun to train. It ends where there is too little.
};

/// The outcome of a task.
struct PlayedTask {
  Instant started;  ///< Of the last attempt, as the two below.
  Instant trains;
  Instant ended;
  model::MachineIndex machine;
  std::vector<model::GpuIndex> gpus;  ///< Of that machine.
  int attempts = 0;
  bool finished = false;
};

/// Why tasks waited: one line each time that it changed.
struct PlayedWait {
  Instant at;
  model::ShapeIndex shape;
  std::string reason;  ///< Empty: they wait no longer.
  std::string brief;   ///< Without what was free just then.
  model::Cause cause = model::Cause::None;
};

struct PlayedRun {
  Instant ended;
  std::vector<PlayedTask> tasks;  ///< By task.
  std::vector<PlayedWait> waits;
  int out_of_memory = 0;  ///< How often a GPU had too little.
};

struct PlayOptions {
  Duration sample_every{60'000};  ///< How often the machines are looked at.
  /// By GPU of the first machine: what is there now that is none of the run's, and stays. Empty:
  /// nothing is.
  std::vector<model::GpuReading> others;
  /// The part of its speed that an overcommitted GPU loses by each task beyond the first, in
  /// thousandths (schedule/card_shares.h).
  int crowding = 0;
  /// Is told how many tasks have finished, each time that one more of them has.
  std::function<void(std::size_t)> on_finished;
};

/// `courses` are by task, and there is one machine at least. An error when the run does not end, as
/// when a task waits for what it never gets.
Result<PlayedRun> play_run(const model::Plan& plan, const model::Policy& policy,
                           const std::vector<model::NamedMachine>& machines,
                           const std::vector<Course>& courses, const PlayOptions& options = {});

}  // namespace trainyard::plan

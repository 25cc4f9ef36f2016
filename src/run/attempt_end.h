// Converts the keeper's report of the end of an attempt to the event for the scheduler.
//
// Pure; any thread.
#pragma once

#include <optional>

#include "base/bytes.h"
#include "base/time.h"
#include "model/event.h"
#include "process/keeper.h"

namespace trainyard::run {

struct EndedWhere {
  Duration clock_offset;                           ///< From the keeper's clock to that of the run.
  std::optional<Instant> lived_at = std::nullopt;  ///< When it was last seen to live.
  bool on_gpus = false;                            ///< It had GPUs,
  /// and shared them through a service (MPS) that is gone, without having been told to end for
  /// that.
  bool mps_gone = false;
};

/// Without measurements of the attempt, except `lived_at`: a keeper that was suspended knows of an
/// end only that it did not come before that.
model::AttemptEnded attempt_ended_from(const process::ProcessEnded& news, const EndedWhere& where);

/// The memory of an attempt as the samples show it.
struct SampledMemory {
  Bytes peak;
  Bytes others;        ///< The most that one process had of files and shared memory.
  bool alone = false;  ///< No other source reports its memory, unless it has a control group.
};

struct MemoryPeak {
  Bytes bytes;
  bool at_least = false;
};

/// The samples see the whole tree, and not its peak. The peak is known for a control group of its
/// own; else for the largest process, which is reported as "at least". Pages of files in that
/// process are left out, and memory that may have been the keeper's: a process that executes a
/// program takes over the mark of its former program. A little more than the mark or the samples is
/// no news: the kernel counts in steps, and pages of files come and go.
MemoryPeak memory_peak_of(const process::ProcessEnded& news, const SampledMemory& sampled);

}  // namespace trainyard::run

// What the keeper says of the end of an attempt, as the event that it is for the scheduler.
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
  std::optional<Instant> lived_at = std::nullopt;  ///< It was seen to, last.
  bool on_gpus = false;                            ///< It had some,
  /// and shared them through a service (MPS) that is gone, which nobody had told it to end for.
  bool mps_gone = false;
};

/// Without what was seen of the attempt meanwhile, but for this: a keeper that was stopped knows no
/// more of an end than that it did not come before it was.
model::AttemptEnded attempt_ended_from(const process::ProcessEnded& news, const EndedWhere& where);

/// What samples saw of the memory of an attempt.
struct SampledMemory {
  Bytes peak;
  Bytes others;        ///< The most that one process had of files and shared memory.
  bool alone = false;  ///< Nothing else tells of its memory, unless it has a control group.
};

struct MemoryPeak {
  Bytes bytes;
  bool at_least = false;
};

/// The samples see the whole tree, and not its peak. That is known of a control group of its own;
/// else of the largest process, which is told as "at least". Of what that had in memory pages of
/// files are left out, and what may have been the keeper's: whoever becomes a program takes over
/// the mark of what it was. A little more than the mark or the samples is no news: the kernel
/// counts in steps, and pages of files come and go.
MemoryPeak memory_peak_of(const process::ProcessEnded& news, const SampledMemory& sampled);

}  // namespace trainyard::run

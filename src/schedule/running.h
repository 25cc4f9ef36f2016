// An attempt as the scheduler remembers it. For the files of this folder alone; what holds of it
// stands in schedule/state.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "model/ids.h"
#include "model/resources.h"
#include "model/status.h"
#include "schedule/ending.h"
#include "schedule/estimates.h"
#include "schedule/gpu_ledger.h"

namespace trainyard::schedule {

/// What an attempt said to have run out of.
enum class Lack : std::uint8_t {
  HostMemory,
  GpuMemory,   ///< Of a GPU that it was given.
  GpuNotGiven  ///< It used one all the same.
};

/// An attempt, from the decision to start it to the news that it is gone.
struct Running {
  model::AttemptKey key;
  Instant started;  ///< When its process began; before that is known, when it was asked for.
  /// When there first was a cause for which it was told to end, or will be.
  std::optional<Instant> told_to_end;
  Bytes memory_asked;  ///< What it waited for, which may not be what it was promised then.
  bool seen = false;   ///< Its process is known to exist.
  Status status_before = Status::Init;  ///< What the task was when it was asked for,
  Stage stage_before = Stage::Load;     ///< in which stage when it was last told to train,
  bool gpus_by_grant = false;           ///< and whether it had its GPUs from that.
  Stage stage = Stage::Train;           ///< Load until a two-phase task trains for the first time.
  bool ahead = false;                   ///< It was started and does not train yet.
  bool waits = false;                   ///< It has loaded and waits for its device, in loaded_.
  std::optional<Instant> training_since;  ///< Nothing while it loads or waits for its device.
  std::optional<LastWord> word;           ///< What its process said last; after that it only ends.
  /// Its process says nothing more of itself: it has trained when it ends well.
  bool its_end_tells = false;
  StopCause cause = StopCause::None;  ///< Why it was asked to end, if it was.
  /// A person, its group, the run or a GPU that is gone ended it: no other try comes, also where
  /// it had ended itself before.
  bool for_good = false;
  bool signalled = false;   ///< The signal that its terms want before any TERM has been sent.
  bool terminated = false;  ///< TERM has been sent.
  bool killed = false;      ///< KILL has been sent.
  std::optional<Duration> killed_after;  ///< It was sent so long after TERM, as the grace was over.
  /// When the next of these comes unless it has ended by then, as end_overdue() says.
  std::optional<Instant> deadline;
  /// What is left of its time limit, where it does not run down: that stands still while it waits
  /// for its device. Of no meaning for one without a limit.
  std::optional<Duration> time_left;
  std::vector<std::uint64_t> kill_requests;  ///< The requests that are answered at its end.
  model::Request promise;                    ///< What is reserved for it now.
  Bytes memory_peak;                         ///< The most memory that any reading has shown.
  Peak told;                                 ///< What is counted of it as learned.
  model::Site site;                          ///< With the GPUs that it holds.
  Bytes gpu_memory_max;          ///< What it was told to take at most of each; 0: nothing.
  bool is_capped = false;        ///< And it was told so in words that it understands.
  Lack lack = Lack::HostMemory;  ///< What it ran out of last.
  /// The tasks or processes that had too much of its GPU when it ran out of memory there.
  std::optional<GpuLedger::Crowding> crowding;
  Peak needed;  ///< Once it has ended: what it was seen to need, or said that it needs.
  /// The one of its GPUs that did not answer shortly before it ended, if it ended for that.
  std::optional<model::GpuIndex> lost_gpu;

  /// True if a capped task had, or wanted, about as much as its cap: the cap is what it ran into.
  [[nodiscard]] bool is_near_its_cap(Bytes peak) const {
    return is_capped && model::is_near_cap(peak, gpu_memory_max);
  }
};

/// How long tasks have trained.
struct Durations {
  std::int64_t count = 0;
  Duration sum{0};
  Duration longest{0};

  void add(Duration took) {
    ++count;
    sum += took;
    longest = std::max(longest, took);
  }
};

/// What an attempt is started with.
struct Beginning {
  const model::Request& asked;  ///< What it waited for.
  const model::Request& given;
  const model::Site& site;
};

}  // namespace trainyard::schedule

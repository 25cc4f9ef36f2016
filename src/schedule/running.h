// An attempt as the scheduler remembers it. For the files of this folder alone; its invariants are
// in schedule/state.h.
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

/// The resource that an attempt reported to have run out of.
enum class Lack : std::uint8_t {
  HostMemory,
  GpuMemory,   ///< On a GPU that it was assigned.
  GpuNotGiven  ///< It used a GPU that it was not assigned.
};

/// An attempt, from the decision to start it to the news that it is gone.
struct Running {
  model::AttemptKey key;
  Instant started;  ///< The start of its process; before that is known, of the command.
  /// The moment of the first cause for which it was stopped, or will be.
  std::optional<Instant> told_to_end;
  Bytes memory_asked;  ///< The request that it waited for, which may differ from its reservation
                       ///< then.
  bool seen = false;   ///< Its process is known to exist.
  Status status_before = Status::Init;  ///< The status of the task before this attempt,
  Stage stage_before = Stage::Load;     ///< its stage at the last grant of its device,
  bool gpus_by_grant = false;           ///< and whether it had its GPUs from that.
  Stage stage = Stage::Train;           ///< Load until a two-phase task trains for the first time.
  bool ahead = false;                   ///< It was started and does not train yet.
  bool waits = false;                   ///< It has loaded and waits for its device, in loaded_.
  std::optional<Instant> training_since;  ///< Nothing while it loads or waits for its device.
  std::optional<LastWord> word;           ///< The last message of its process; after that it only
                                          ///< ends.
  /// Its process reports nothing more: it has trained if it exits with success.
  bool its_end_tells = false;
  StopCause cause = StopCause::None;  ///< Why it was asked to end, if it was.
  /// A user, its group, the run or a lost GPU ended it: it is not retried, even if it had ended
  /// itself before.
  bool for_good = false;
  bool signalled = false;   ///< The signal that it wants before any TERM has been sent.
  bool terminated = false;  ///< TERM has been sent.
  bool killed = false;      ///< KILL has been sent.
  std::optional<Duration> killed_after;  ///< Time from TERM to KILL, as the grace was over.
  /// The time of the next of these unless it has ended by then; see end_overdue().
  std::optional<Instant> deadline;
  /// The rest of its time limit while that is suspended: time that it waits for its device does not
  /// count. Unused without a limit.
  std::optional<Duration> time_left;
  std::vector<std::uint64_t> kill_requests;  ///< The requests that are answered at its end.
  model::Request promise;                    ///< The present reservation.
  Bytes memory_peak;                         ///< The most memory that any reading has shown.
  Peak counted;                              ///< The peaks that are counted as learned.
  model::Site site;                          ///< With the GPUs that it holds.
  Bytes gpu_memory_max;                      ///< The cap that it was given on each; 0: none.
  bool is_capped = false;        ///< It was given the cap in variables that it understands.
  Lack lack = Lack::HostMemory;  ///< The resource that it ran out of last.
  /// The tasks or processes that had too much of its GPU when it ran out of memory there.
  std::optional<GpuLedger::Crowding> crowding;
  Peak needed;  ///< Set at its end: its measured need, or the need that it reported.
  /// A GPU that did not answer shortly before it ended, if it ended for that.
  std::optional<model::GpuIndex> lost_gpu;

  /// True if a capped task had, or wanted, about as much as its cap: it ran into the cap.
  [[nodiscard]] bool is_near_its_cap(Bytes peak) const {
    return is_capped && model::is_near_cap(peak, gpu_memory_max);
  }
};

/// The training times of tasks.
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

/// The values with which an attempt is started.
struct Beginning {
  const model::Request& asked;  ///< The request that it waited for.
  const model::Request& given;
  const model::Site& site;
};

}  // namespace trainyard::schedule

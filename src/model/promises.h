// The reservations of a yard on a machine, as it shares them with its neighbours: the other yards
// that start tasks there, of any user. Plain values.
//
// Of each GPU and of the host there are two numbers, as in schedule/ledger.h: what its tasks hold,
// and what of that was promised and has not been taken yet. What was taken anybody sees who looks
// at the machine; so the second number is what has to be known beside it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "model/resources.h"

namespace trainyard::model {

/// The reservations of all tasks of a yard together on one GPU.
struct CardPromise {
  std::string uuid;
  Bytes memory;  ///< The sum over the tasks of the larger of reserved and used.
  Bytes unused;  ///< The part that is reserved and not used.
  int tasks = 0;
  bool whole = false;  ///< One of them has it for its own.
  /// Their utilization together, and the fewest tasks that one of them allows there.
  GpuSharing sharing;
  std::int64_t since_unix_s = 0;  ///< When the first of them was promised its part.

  friend bool operator==(const CardPromise&, const CardPromise&) = default;
};

/// The reservations of all tasks of a yard together on a machine.
struct HeldPromise {
  Bytes memory;
  Bytes unused;
  Cpus cpus;
  int tasks = 0;
  std::int64_t since_unix_s = 0;
  std::vector<CardPromise> cards;  ///< In order of their UUIDs, each once.

  friend bool operator==(const HeldPromise&, const HeldPromise&) = default;
};

/// The drop-outs of a GPU that a yard has seen (model/gpu_presence.h).
struct DropOuts {
  std::string uuid;
  int number = 0;  ///< As Gpu has it: the GPU may be unknown to the driver meanwhile.
  std::optional<int> slice = std::nullopt;  ///< The same.
  int times = 0;
  /// Until then the yard starts no tasks on the GPU. 0: the GPU does not answer now, so that the
  /// end is not known.
  std::int64_t avoided_until_unix_s = 0;

  friend bool operator==(const DropOuts&, const DropOuts&) = default;
};

/// The request of the oldest task that waits for room.
struct Want {
  Bytes memory;
  Cpus cpus;
  int gpus = 0;
  Bytes gpu_memory;  ///< On each; 0: whole ones.
  /// Since when its yard has waited and got nothing of this kind.
  std::int64_t since_unix_s = 0;

  friend bool operator==(const Want&, const Want&) = default;
};

struct Promises {
  /// When the yard came to the machine, and something random: the smaller is the older.
  std::string ticket;
  std::uint32_t run = 0;  ///< Its number; 0: it has none.
  /// Stands for the list of numbers that `run` is in: each home directory has its own. Empty: none.
  std::string numbering = {};
  std::string name;  ///< Of its directory.
  /// The part of the machine that its tasks may use in all: another yard with a larger part may
  /// count these promises within it, and one with a smaller part knows nothing of the rest.
  Bytes memory_total;
  Cpus cpus_total;
  HeldPromise held;
  /// Reservations that it is about to add, unless another yard takes the room first.
  HeldPromise claimed;
  std::optional<Want> want;
  std::vector<DropOuts> drop_outs = {};  ///< Only for people. Each GPU once.

  friend bool operator==(const Promises&, const Promises&) = default;
};

/// Another yard on the machine.
struct Neighbour {
  std::uint32_t user = 0;
  bool is_ours = false;   ///< Of the same user as we are.
  std::string user_name;  ///< Empty where that number has none.
  /// The last midnight here, for the time of day at which something began.
  std::int64_t midnight_unix_s = 0;
  /// For how long it has waited, and whether it goes before us where we have as much: it has waited
  /// longer for it, or as long and is older.
  Duration waits{0};
  bool goes_first = false;
  /// For how long we have waited for the same, GPUs or the host; 0: we wait for neither, or for the
  /// other.
  Duration we_wait{0};
  Promises its;

  friend bool operator==(const Neighbour&, const Neighbour&) = default;
};

/// "another user's run (alice)", "another user's run (uid 1001)", "your run 46 (sweep)", without a
/// number that means the run here "your run (sweep)".
std::string name_of(const Neighbour& neighbour);

/// "02:10", "02:10 yesterday", "02:10, 3 days ago".
std::string time_of_day(std::int64_t unix_s, const Neighbour& seen_by);

/// Both together; of two that hold the same card the sum.
HeldPromise sum_of(const HeldPromise& one, const HeldPromise& other);

/// The reservation on a card; null where there is none.
const CardPromise* find_card(const HeldPromise& held, const std::string& uuid);

}  // namespace trainyard::model

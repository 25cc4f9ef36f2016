// The choice of the submissions of a queue that begin next. Pure.
//
// Each submission becomes a run, and the machine's ledger divides the resources among the runs. So
// the queue lets a few runs wait for room, the first ones. It begins the next when one of these has
// found its room, or when they lack something that the next one does not request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "model/resources.h"
#include "model/terms.h"
#include "model/waiting.h"

namespace trainyard::queue {

/// Up to this number of runs that hold back a submission (holds_back()) wait for room at a time: a
/// submission that waits behind them costs a file.
constexpr std::size_t kWithoutRoomMax = 8;
/// Up to this number of runs may be active.
constexpr std::size_t kAtWorkMax = 128;

/// The outcome of a run or a submission that another one needs.
enum class Fate : std::uint8_t { NotEnded, EndedWell, EndedBadly, Unknown };

/// Whether tasks that wait for this wait for room, which the end of another run may give them.
/// False for tasks that are held or wait for a time.
bool waits_for_room(model::Cause cause);

/// Whether tasks that wait for this lack CPUs, which tasks or other processes use.
bool lacks_cpus(model::Cause cause);

struct QueuedSubmission {
  std::uint32_t number = 0;
  int priority = 0;                  ///< The larger go first.
  std::vector<std::uint32_t> needs;  ///< Numbers of submissions or runs.
  model::RunIf run_if = model::RunIf::Success;
  bool needs_gpu = false;  ///< Some task needs one.
  Bytes memory;            ///< The smallest request of its tasks.
  model::Cpus cpus;        ///< The smallest request of its tasks.
};

/// Why tasks of a run wait for room, and the smallest request of the tasks that wait for this.
struct RoomNeed {
  model::Cause cause = model::Cause::None;  ///< None: not known yet.
  Bytes memory;
  model::Cpus cpus;

  friend bool operator==(const RoomNeed&, const RoomNeed&) = default;
};

/// The need of the tasks of both: that of the first cause.
RoomNeed joined(const RoomNeed& one, const RoomNeed& other);

/// A run of the queue with tasks that wait for room.
struct RunWithoutRoom {
  QueuedSubmission submission;  ///< The one that became this run.
  RoomNeed need;
};

struct QueueLoad {
  std::vector<RunWithoutRoom> without_room;
  std::size_t at_work = 0;  ///< All runs of the queue.
};

/// Whether a submission has to wait until this run has found room. A run never holds up one of a
/// higher priority. A run that lacks memory or CPUs, and whose waiting tasks all request some,
/// holds up submissions that request as much of it or more. Of the other runs those that need a GPU
/// hold up submissions that need one, the rest the rest.
bool holds_back(const RunWithoutRoom& run, const QueuedSubmission& submission);

/// A submission that never begins.
struct SkippedSubmission {
  std::uint32_t number = 0;
  std::string why;
  /// The submission starts only after a failure, and nothing failed: this is no failure.
  bool not_needed = false;
  std::uint32_t needed = 0;  ///< The run that it needs and that did not succeed; 0: no such run.

  friend bool operator==(const SkippedSubmission&, const SkippedSubmission&) = default;
};

struct QueueChoice {
  std::vector<std::uint32_t> begin;  ///< In this order.
  std::vector<SkippedSubmission> skip;
};

using FateOf = std::function<Fate(std::uint32_t number)>;

/// Chooses from the waiting submissions, which may be in any order. A skipped submission counts as
/// failed unless it was not needed, and decides about those behind it in the order of the queue;
/// call this again for those before it.
QueueChoice choose_next(std::vector<QueuedSubmission> waiting, QueueLoad load,
                        const FateOf& fate_of);

/// Why a submission that was skipped for this reason does not begin, in words that are true now:
/// where the run that it needs may succeed yet, or has succeeded since, they say how to put the
/// submission back.
std::string present_reason(const QueuedSubmission& skipped, std::string_view why,
                           const FateOf& fate_of);

/// In the order in which they would begin if none needed another.
void order_queue(std::vector<QueuedSubmission>& waiting);

}  // namespace trainyard::queue

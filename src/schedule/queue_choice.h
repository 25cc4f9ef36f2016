// Which submissions of a queue begin next. Pure.
//
// Each becomes a run of its own, and the machine's ledger shares out what there is among the runs.
// So the queue need not know what a submission asks for: it keeps a few runs waiting for room, the
// first ones, and begins the next when one of these has found its room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "model/terms.h"

namespace trainyard::schedule {

/// So many runs of a queue may look for room at a time: what waits behind them costs a file.
constexpr std::size_t kLookingMax = 8;
/// And so many may be at work.
constexpr std::size_t kAtWorkMax = 128;

/// What has become of a run or a submission that another one needs.
enum class Fate : std::uint8_t { NotEnded, EndedWell, EndedBadly, Unknown };

struct QueuedSubmission {
  std::uint32_t number = 0;
  int priority = 0;                  ///< The larger go first.
  std::vector<std::uint32_t> needs;  ///< Numbers of submissions or runs.
  model::RunIf run_if = model::RunIf::Success;
};

struct QueueLoad {
  std::size_t looking = 0;  ///< Runs of the queue that look for room,
  std::size_t at_work = 0;  ///< and all of them.
};

/// One that never begins.
struct SkippedSubmission {
  std::uint32_t number = 0;
  std::string why;
  /// It was for a failure, and there was none: no failure itself.
  bool not_needed = false;

  friend bool operator==(const SkippedSubmission&, const SkippedSubmission&) = default;
};

struct QueueChoice {
  std::vector<std::uint32_t> begin;  ///< In this order.
  std::vector<SkippedSubmission> skip;
};

using FateOf = std::function<Fate(std::uint32_t number)>;

/// Of those that wait, in any order. What is skipped ends badly but where it was not needed: look
/// again for what needs it.
QueueChoice choose_next(std::vector<QueuedSubmission> waiting, const QueueLoad& load,
                        const FateOf& fate_of);

/// In the order in which they would begin if none needed another.
void order_queue(std::vector<QueuedSubmission>& waiting);

}  // namespace trainyard::schedule

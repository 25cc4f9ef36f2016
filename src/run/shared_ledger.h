// One ledger of a machine for all yards on it: this yard's reservations are published to the
// others, and theirs are read. This yard starts tasks only if none of them has been quicker
// (schedule/claim.h). There is no ledger but the files of all of them, and nobody waits for a lock.
//
// Belongs to the thread of the loop. Touches nothing but the board that it is given: a file each
// (process/promise_board.h), or a list in memory that is played with (tests/sim/many_yards.h).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/time.h"
#include "model/event.h"
#include "model/plan.h"
#include "model/promises.h"
#include "model/resources.h"
#include "model/turn.h"
#include "run/machine.h"
#include "run/own_promises.h"

namespace trainyard::run {

class SharedLedger {
 public:
  /// Maximum number of looks at the outcome while a younger yard claims the same.
  static constexpr int kLooksMax = 16;

  struct Board {
    std::move_only_function<void(const model::Promises&)> write;
    /// All others, by ticket, without what SharedLedger adds: how long each waits, and whether it
    /// goes first.
    std::move_only_function<std::vector<model::Neighbour>()> read;
    /// Lets others go on, for a moment.
    std::move_only_function<void()> pause;
    std::move_only_function<std::int64_t()> unix_s;
    /// Receives notes for the user about the others, once for each user.
    std::move_only_function<void(const std::string&)> note;
  };
  struct Options {
    std::string ticket;
    std::uint32_t run = 0;  ///< Its number; 0: it has none.
    std::string name;       ///< Name of its directory.
    Duration gpu_steady_after = model::Policy().gpu_steady_after;
  };

  SharedLedger(Board board, const model::Capacity& capacity, const Options& options);

  /// See run::Machine::claim().
  std::optional<model::ClaimRefused> claim(const Claim& claim);

  /// Takes in a turn, once it is committed: the resources of ended tasks are free to others.
  void see(const model::Turn& turn);

  /// Reads the others. Nothing if they are as in the last result; `thorough`: also if they differ
  /// only in things that need no new decision: the amounts taken, and the waiting times.
  struct Look {
    bool thorough = false;
  };
  std::optional<model::NeighboursSeen> look(Look look);

  /// The others at the last look that was reported to the scheduler.
  [[nodiscard]] const std::vector<model::Neighbour>& neighbours() const { return told_; }

  /// Whether it is worth to look often: tasks wait, and others have what they may wait for.
  [[nodiscard]] bool is_worth_a_look() const { return own_.want().has_value() && !told_.empty(); }

 private:
  [[nodiscard]] model::Promises promises(Instant at) const;
  void publish(const model::Promises& promises);
  std::vector<model::Neighbour> read();
  void keep_within_machine(model::Neighbour& neighbour);

  Board board_;
  model::Capacity capacity_;
  OwnPromises own_;
  model::Promises base_;  ///< The constant part of the file that we write.
  std::optional<model::Promises> written_;
  std::vector<model::Neighbour> told_;  ///< The last report to the scheduler.
  std::set<std::uint32_t> doubted_;     ///< Users whose reservations are in a note.
  Instant at_;                          ///< The last thing that happened.
};

}  // namespace trainyard::run

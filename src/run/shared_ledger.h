// One ledger of a machine for all yards on it: what this yard has promised is told to the others,
// what they have promised to this one, and what it is about to start it starts only where none of
// them has been quicker (schedule/claim.h). There is no ledger but the files of all of them, and
// nobody waits for a lock.
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
  /// One that claims as well as a younger one looks so often what has become of that.
  static constexpr int kLooksMax = 16;

  struct Board {
    std::move_only_function<void(const model::Promises&)> write;
    /// All others, by ticket, without what SharedLedger adds: how long each waits, and whether it
    /// goes first.
    std::move_only_function<std::vector<model::Neighbour>()> read;
    /// Lets others go on, for a moment.
    std::move_only_function<void()> pause;
    std::move_only_function<std::int64_t()> unix_s;
    /// What people should know of the others, once for each user.
    std::move_only_function<void(const std::string&)> note;
  };
  struct Options {
    std::string ticket;
    std::uint32_t run = 0;  ///< Its number; 0: it has none.
    std::string name;       ///< Of its directory.
    Duration gpu_steady_after = model::Policy().gpu_steady_after;
  };

  SharedLedger(Board board, const model::Capacity& capacity, const Options& options);

  /// As run::Machine::claim() says.
  std::optional<model::ClaimRefused> claim(const Claim& claim);

  /// What happened in a turn, once it is written down: what has ended is free to others.
  void see(const model::Turn& turn);

  /// Looks at the others. Nothing where that is as it was when it was told last; `thorough`: also
  /// in what it is not worth to decide for anew, how much each has taken and for how long it waits.
  struct Look {
    bool thorough = false;
  };
  std::optional<model::NeighboursSeen> look(Look look);

  /// The others at the last look of which the scheduler was told.
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
  model::Promises base_;  ///< What does not change of what we write.
  std::optional<model::Promises> written_;
  std::vector<model::Neighbour> told_;  ///< As the scheduler was told last.
  std::set<std::uint32_t> doubted_;     ///< Users whose reservations are in a note.
  Instant at_;                          ///< The last thing that happened.
};

}  // namespace trainyard::run

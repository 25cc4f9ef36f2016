// One ledger of a machine for all yards on it: this yard's reservations are published to the
// others, and theirs are read. This yard starts tasks only if none of them has been quicker
// (schedule/claim.h). There is no ledger but the files of all of them, and nobody waits for a lock.
//
// Belongs to the thread of the loop. Touches nothing but the board that it is given: a file each
// (process/promise_board.h), or a list in memory that is played with (tests/sim/many_yards.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "model/command.h"
#include "model/event.h"
#include "model/gpu_presence.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/promises.h"
#include "model/resources.h"
#include "model/turn.h"
#include "model/waiting.h"
#include "run/machine.h"

namespace trainyard::run {

/// The reservations that a yard has made for its tasks, kept up to date by its decisions and
/// events: its neighbours read them. Pure: the time is an argument.
class OwnPromises {
 public:
  /// A reservation on a GPU of which nothing was taken for so long is hidden from neighbours.
  static constexpr Duration kIdleMax{900'000};

  /// `gpu_steady_after` is that of the policy.
  OwnPromises(const model::Capacity& capacity, Duration gpu_steady_after);

  /// The additional reservations of a decision.
  [[nodiscard]] model::HeldPromise claim_of(const model::Decision& decided) const;
  /// The attempts that they are for.
  static std::vector<model::AttemptKey> attempts_of(const model::Decision& decided);
  /// Adds them.
  void hold(const model::Decision& decided, Instant at, std::int64_t unix_s);

  /// Takes in an event, and the decision about it; the reservations of its starts are held already.
  void see(const model::Event& event, const model::Decision& decided, std::int64_t unix_s);

  [[nodiscard]] model::HeldPromise held(Instant at) const;
  /// The drop-outs of each GPU that has had any.
  [[nodiscard]] std::vector<model::DropOuts> drop_outs() const;
  /// The claim of the waiting tasks that need GPUs or, if no such task waits, of the other tasks.
  [[nodiscard]] std::optional<model::Want> want() const;

 private:
  struct Attempt {
    model::AttemptKey key;
    Bytes memory;
    Bytes measured;  ///< At the last reading.
    model::Cpus cpus;
    std::int64_t since_unix_s = 0;
    std::vector<model::GpuIndex> gpus;
    Bytes each;  ///< On each of them; 0: they are its own.
    model::GpuSharing sharing;
    std::vector<Bytes> measured_on;  ///< In the order of `gpus`.
    Instant gpus_at;                 ///< The time of the reservation.
    bool has_taken = false;          ///< It has taken memory of any of them, ever.
    std::int64_t gpus_since_unix_s = 0;
  };
  enum class Kind : std::uint8_t { OfHost, OfGpus };

  [[nodiscard]] bool is_idle(const Attempt& attempt, Instant at) const;
  void add_cards(model::HeldPromise& to, const Attempt& attempt) const;
  void see_gpus(Instant at, const model::GpusSampled& reading, std::int64_t unix_s);
  void see_reason(const model::ReasonChanged& change, std::int64_t unix_s);
  [[nodiscard]] const model::Reason* oldest_want(Kind kind) const;
  std::int64_t& since(Kind kind) { return since_.at(static_cast<std::size_t>(kind)); }

  /// Whether a GPU answers, and until when the scheduler avoids it.
  struct Presence {
    model::GpuPresence presence;
    std::int64_t avoided_until_unix_s = 0;  ///< See model::DropOuts.
  };

  std::vector<model::Gpu> gpus_;
  std::vector<bool> processes_known_;  ///< By GPU: the driver says who has what.
  std::vector<Presence> presences_;    ///< By GPU.
  std::map<model::TaskIndex, Attempt> attempts_;
  std::map<model::ShapeIndex, model::Reason> wants_;  ///< Of shapes that lack room.
  /// The time since which a kind was wanted, and none of it was started or has ended.
  std::array<std::int64_t, 2> since_{};
};

class SharedLedger {
 public:
  /// Maximum number of looks at the outcome while a younger yard claims the same.
  static constexpr int kLooksMax = 16;

  struct Board {
    std::move_only_function<void(const model::Promises&)> write;
    /// All others, by ticket, without what SharedLedger adds: how long each waits and we wait, and
    /// whether it goes first.
    std::move_only_function<std::vector<model::Neighbour>()> read;
    /// Lets others go on, for a moment.
    std::move_only_function<void()> pause;
    std::move_only_function<std::int64_t()> unix_s;
    /// Receives notes for the user about the others, once for each user.
    std::move_only_function<void(const std::string&)> note;
  };
  struct Options {
    std::string ticket;
    std::uint32_t run = 0;       ///< Its number; 0: it has none.
    std::string numbering = {};  ///< See model::Promises.
    std::string name;            ///< Name of its directory.
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

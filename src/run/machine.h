// The place where tasks run: the loop's only way to touch the world. run/local_machine.h starts
// real processes, run/fleet.h adds the machines of agents, and tests/sim/machine.h makes everything
// up from a seed.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "base/time.h"
#include "model/command.h"
#include "model/event.h"
#include "model/waiting.h"

namespace trainyard::run {

/// The tasks about to be started on a machine that is shared with others.
struct Claim {
  const model::Decision& decided;
  /// The room left with all of them started. Computed only if it matters.
  std::function<model::Headroom()> left;
  Instant at;
  int round = 1;  ///< Number of decisions in this turn so far, this one included.
};

class Machine {
 public:
  /// Maximum number of new decisions in a turn after refusals.
  static constexpr int kClaimRoundsMax = 4;

  Machine() = default;
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  virtual ~Machine() = default;

  /// Carries out a command of the scheduler. Does not wait for it to be done: its outcome is an
  /// event.
  virtual void carry_out(const model::Command& command) = 0;

  /// Asks whether the decided starts may be made: between the decision and its commit, and only if
  /// something is started. Nothing: they may, and belong to us from here on. Else none may; the
  /// scheduler decides again by this event, and the machine is asked again. The last round says
  /// `no_more`.
  virtual std::optional<model::ClaimRefused> claim(const Claim& claim) {
    static_cast<void>(claim);
    return std::nullopt;
  }

  /// Waits for things to happen and returns them in order, at least one. With `until`, a TimePassed
  /// comes at that moment when nothing else came before. The first things of all are that it joins
  /// and a reading of it: of its GPUs, where it has some, and of itself.
  virtual std::vector<model::Event> wait(std::optional<Instant> until) = 0;

  /// All that wait() has returned is committed.
  virtual void is_written() {}

  /// Whether a batch is pending, so that an idle run is not over yet.
  [[nodiscard]] virtual bool more_to_come() const { return false; }
};

}  // namespace trainyard::run

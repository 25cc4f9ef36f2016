// Where tasks run: the loop's only way to touch the world. run/local_machine.h starts real
// processes, run/fleet.h adds the machines of agents, and tests/sim/machine.h makes everything up
// from a seed.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "base/time.h"
#include "model/command.h"
#include "model/event.h"
#include "model/waiting.h"

namespace trainyard::run {

/// What is about to be started on a machine that is shared with others.
struct Claim {
  const model::Decision& decided;
  /// What could be promised with all of that started. Asked for only where it matters.
  std::function<model::Headroom()> left;
  Instant at;
  int round = 1;  ///< How often it was decided in this turn, this time included.
};

class Machine {
 public:
  /// So often is decided anew in a turn what was refused.
  static constexpr int kClaimRoundsMax = 4;

  Machine() = default;
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  virtual ~Machine() = default;

  /// Does what the scheduler asked. Does not wait for it to be done: what became of it is an event.
  virtual void carry_out(const model::Command& command) = 0;

  /// Asks whether what was decided may be started: between deciding it and writing it down, and
  /// only where something is started. Nothing: it may, and belongs to us from here on. Else none of
  /// it may; it is decided anew by what this says, and asked again. The last round says `no_more`.
  virtual std::optional<model::ClaimRefused> claim(const Claim& claim) {
    static_cast<void>(claim);
    return std::nullopt;
  }

  /// Waits for things to happen and returns them in order, at least one. With `until`, a TimePassed
  /// comes at that moment when nothing else came before. The first things of all are that it joins
  /// and a reading of it: of its GPUs, where it has some, and of itself.
  virtual std::vector<model::Event> wait(std::optional<Instant> until) = 0;

  /// All that wait() has returned is written down.
  virtual void is_written() {}

  /// Whether a batch is on its way, so that an idle run is not over yet.
  [[nodiscard]] virtual bool more_to_come() const { return false; }
};

}  // namespace trainyard::run

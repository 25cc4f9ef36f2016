// The interface of those who watch a simulated run from outside: sim/checkers.h for one machine,
// with all rules for every event; sim/fleet_rules.h for several.
//
// A run that broke a rule is led to its end by the recorder and the machine (sim/run_sim.cc); no
// rule is checked after that.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/time.h"
#include "model/command.h"
#include "model/turn.h"

namespace trainyard::sim {

class Watcher {
 public:
  Watcher() = default;
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;
  virtual ~Watcher() = default;

  /// A turn is offered to the journal; `committed` when it was written.
  virtual void offered(const model::Turn& turn, bool committed) = 0;
  /// A command is carried out by the yard.
  virtual void carried_out(const model::Command& command) = 0;
  /// The loop waits.
  virtual void waits(std::optional<Instant> until) = 0;
  /// The loop has come back: with all done, or because the journal could not be written.
  virtual void over(bool gave_up, std::size_t processes_left) = 0;

  virtual void complain(std::string what) = 0;
  /// The first rule that was broken, in words.
  [[nodiscard]] virtual const std::optional<std::string>& complaint() const = 0;
};

}  // namespace trainyard::sim

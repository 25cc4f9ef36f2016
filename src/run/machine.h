// Where tasks run: the loop's only way to touch the world. run/local_machine.h starts real
// processes; sim/machine.h makes everything up from a seed; agents on other machines come later.
#pragma once

#include <optional>
#include <vector>

#include "base/time.h"
#include "model/command.h"
#include "model/event.h"

namespace trainyard::run {

class Machine {
 public:
  Machine() = default;
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  virtual ~Machine() = default;

  /// Does what the scheduler asked. Does not wait for it to be done: what became of it is an event.
  virtual void carry_out(const model::Command& command) = 0;

  /// Waits for things to happen and returns them in order, at least one. With `until`, a TimePassed
  /// comes at that moment when nothing else came before. The first thing of all is a reading of the
  /// machine: of its GPUs, where it has some, and of itself.
  virtual std::vector<model::Event> wait(std::optional<Instant> until) = 0;

  /// Whether a batch is on its way, so that an idle run is not over yet.
  [[nodiscard]] virtual bool more_to_come() const { return false; }
};

}  // namespace trainyard::run

// Where tasks run: the loop's only way to touch the world. run/local_machine.h starts real
// processes; sim/machine.h makes everything up from a seed; agents on other machines come later.
#pragma once

#include <optional>
#include <vector>

#include "base/time.h"
#include "model/command.h"
#include "model/event.h"
#include "model/resources.h"

namespace trainyard {

/// A first reading.
struct FirstLook {
  Instant at;
  Sampled machine;
  std::optional<GpusSampled> gpus;  ///< Nothing where there are none.
};

class Machine {
 public:
  Machine() = default;
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  virtual ~Machine() = default;

  /// What it offers in all. Does not change while it runs.
  [[nodiscard]] virtual Capacity capacity() const = 0;

  /// A first reading, made now.
  virtual FirstLook look() = 0;

  /// Does what the scheduler asked. Does not wait for it to be done: what became of it is an event.
  virtual void carry_out(const Command& command) = 0;

  /// Waits for things to happen and returns them in order, at least one. With `until`, a TimePassed
  /// comes at that moment when nothing else came before.
  virtual std::vector<Event> wait(std::optional<Instant> until) = 0;
};

}  // namespace trainyard

// The machines of a run, as the machine that began it knows them, and the check of each that asks
// to join. Pure; one thread.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "workers/datagram.h"
#include "workers/machine_words.h"

namespace trainyard::workers {

class Admission {
 public:
  struct Options {
    MachineEntry own;
    std::string topology;
    std::string when_full;
    int elsewhere = 0;  ///< Workers that others bring, all together.
  };
  explicit Admission(Options options) : options_(std::move(options)) {}

  /// Admits or refuses a machine. A machine that asks again, because the answer was lost, gets the
  /// same answer.
  MachineWelcome ask(const MachineHello& hello);
  /// Workers that nobody has brought yet.
  [[nodiscard]] int awaited() const;
  /// Whether it had been let in before it asked this time.
  [[nodiscard]] bool knows(MachineId id) const;

 private:
  [[nodiscard]] std::string refusal(const MachineHello& hello) const;

  Options options_;
  std::vector<MachineEntry> joined_;  ///< In the order in which they came.
};

}  // namespace trainyard::workers

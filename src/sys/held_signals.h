// Signals that are held back for a while: the holder checks whether one has come, and ends its work
// in its own way.
//
// For programs of one thread, not for libraries.
#pragma once

#include <csignal>
#include <vector>

#include "sys/descriptor.h"

namespace trainyard::sys {

class HeldSignals {
 public:
  /// From now on none of these ends this process, until this is destroyed; without any nothing is
  /// held.
  explicit HeldSignals(const std::vector<int>& signals);
  HeldSignals(HeldSignals&&) = delete;
  HeldSignals& operator=(HeldSignals&&) = delete;
  ~HeldSignals();

  /// Becomes readable when one has come; -1 where none is held.
  [[nodiscard]] int descriptor() const { return held_.get(); }
  /// The signal that has come, each once; 0: none has.
  [[nodiscard]] int take() const;

 private:
  sigset_t before_{};
  Descriptor held_;
};

}  // namespace trainyard::sys

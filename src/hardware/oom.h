// Notices the kernel's out-of-memory killer at work: it leaves no message, only a counter.
//
// Says that some process was killed, not which one. One thread.
#pragma once

#include <cstdint>
#include <string>

#include "hardware/capacity.h"

namespace trainyard::hardware {

class OomWatch {
 public:
  explicit OomWatch(const CapacitySources& sources = {});

  /// How many processes it has killed so far, counted by the machine and by our own control group
  /// (so one of ours may count twice). Only whether it has grown means something. Costs about 30
  /// microseconds.
  [[nodiscard]] std::int64_t kills() const;

 private:
  std::string machine_;  ///< The files with the counters.
  std::string group_;    ///< Empty where there is none.
};

}  // namespace trainyard::hardware

// The time limits of a group of ranks.
#pragma once

#include <chrono>
#include <optional>

namespace trainyard {

/// How long things may take. Whatever ends for one of these says its name.
struct RankLimits {
  /// From the start of the processes until all have connected.
  std::chrono::milliseconds launch{300'000};
  std::chrono::milliseconds initialise{300'000};  ///< Until all components are made.
  std::optional<std::chrono::milliseconds> execute =
      {};                                   ///< Of one task; none: as long as it takes.
  std::chrono::milliseconds event{30'000};  ///< Until all who listen have heard an event.
  /// From the order to stop to SIGKILL; SIGTERM comes at half of it.
  std::chrono::milliseconds stop{10'000};
  std::chrono::milliseconds close{5'000};  ///< The same at a clean end.
};

}  // namespace trainyard

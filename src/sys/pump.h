// Carries bytes both ways between two streams, and knows nothing of what they say.
//
// For a process that does nothing else.
#pragma once

namespace trainyard::sys {

/// A pair of descriptors: bytes go from the first to the second.
struct Way {
  int from = -1;
  int to = -1;
};

/// Until one of the two has nothing more, or nobody takes what it has. Whoever does not take it
/// holds up both ways: the other ends must read at all times.
void pump(Way there, Way back);

}  // namespace trainyard::sys

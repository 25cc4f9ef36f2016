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

/// Runs until one of the two ends, or is not read any more. A reader that stalls holds up both
/// ways: the other ends must read at all times.
void pump(Way there, Way back);

}  // namespace trainyard::sys

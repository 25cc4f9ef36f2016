// The descriptors of the yard that a fresh fork of it keeps open.
//
// For the guard and the keeper, first of all. One thread.
#pragma once

#include <optional>
#include <vector>

#include "sys/descriptor.h"

namespace trainyard::process {

/// The number of the held descriptor from then on, if nothing is inherited.
constexpr int kHeldPlace = 4;

struct Kept {
  /// All three standard descriptors, and not standard error alone.
  bool streams = false;
  /// Not read here, only kept open. -1: nothing.
  int held = -1;
  /// Descriptors of the program, for processes that are forks of it. They and what is held keep
  /// their numbers, and `kept` has any other then.
  std::optional<std::vector<int>> inherited = std::nullopt;
};

/// Leaves this process nothing but `kept` as descriptor 3 and what is held as descriptor 4, or what
/// is inherited beside them, and standard descriptors; those that it does not keep are /dev/null.
/// Ends the process where the machine has no descriptor left for that.
sys::Descriptor keep_only(sys::Descriptor kept, const Kept& beside);

/// Ends a guard or keeper to which the machine refuses a resource that it needs, with a sentence on
/// standard error. The yard sees the end as any other.
[[noreturn]] void end_unstarted(int error);

/// Its standard descriptors, too, are /dev/null from here on: no process waits for it to close
/// them.
void let_go_of_streams();

}  // namespace trainyard::process

// The guard: the process behind the keeper, so that nothing outlives a keeper that is killed.
//
//   yard ──▶ guard ──▶ keeper ──▶ tasks
//
// Both are subreapers. What a dead keeper leaves, the kernel hands to the guard, however often it
// has changed its session, its group or its environment; the guard kills it until nothing is left.
// A keeper that does not end though the yard is gone (it is stopped) is killed, too. When the guard
// dies, the keeper ends everything. It has a session of its own, and a name and a
// command line without the program's, so that what kills the program by name leaves it.
//
// Not a second keeper: it starts nothing, and gives nobody time to save anything. What it cannot
// end: processes that wait in the kernel for a dead disk, and those that have become another user.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include <sys/types.h>

#include "base/result.h"
#include "base/time.h"
#include "sys/descriptor.h"

namespace trainyard::process {

/// What `ps` calls it.
inline constexpr std::string_view kGuardName = "yard-guard";

struct Guarded {
  pid_t guard = 0;   ///< Our child, to be waited for. It ends after the keeper.
  pid_t keeper = 0;  ///< Its child.
};

/// What the keeper does, called in its process: with the socket, and with the guard's number.
using KeeperBody = std::function<void(sys::Descriptor socket, pid_t guard)>;

/// Forks the guard, which forks the keeper: that ends when `keeper` returns. Returns in this
/// process alone, once both are there. When this process is gone, the keeper has `patience` to end
/// as well, and is killed then.
Result<Guarded> fork_guarded(sys::Descriptor socket, Duration patience, const KeeperBody& keeper);

/// Which signal killed the keeper, from the status of a guard that has ended; nothing when none
/// did, or when the guard itself was killed.
std::optional<int> signal_of_keeper(int guard_status);

}  // namespace trainyard::process

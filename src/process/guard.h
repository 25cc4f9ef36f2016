// The guard: the process behind the keeper. It ends what a keeper that died has left, and forks
// another one in its place, so that the run goes on.
//
//   yard ──▶ guard ──▶ keeper ──▶ tasks
//     ▲        │
//     └────────┘ words (process/guard_words.h): the yard's end of a new keeper's socket
//
// Guard and keeper are subreapers. What a dead keeper leaves, the kernel hands to the guard,
// however often it has changed its session, its group or its environment; the guard kills it until
// nothing is left. It is as it was forked, with all that the program had then, and so is each
// keeper.
//
// A keeper that the yard hears nothing of is told to go on when it is stopped, and killed when it
// bears no more of it (process/keeper_patience.h). One that does not end though the yard is gone is
// killed, too. When the guard dies, the keeper ends everything. It has a session of its own, and a
// name and a command line without the program's, so that what kills the program by name leaves it.
//
// Not a second keeper: it starts no task, and gives nobody time to save anything. What it cannot
// end: processes that wait in the kernel for a dead disk, and those that have become another user.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "base/time.h"
#include "process/exit_board.h"
#include "process/socket_remains.h"
#include "sys/descriptor.h"

namespace trainyard::process {

/// What `ps` calls it.
inline constexpr std::string_view kGuardName = "yard-guard";

struct GuardOptions {
  Duration patience{0};  ///< How long a keeper has to end everything when the yard is gone.
  /// It keeps this program's standard input and output for the keepers, and not standard error
  /// alone.
  bool keeps_streams = false;
  /// A descriptor that it holds as long as it lives, and every keeper with it; -1: none.
  int held = -1;
  /// As Kept::inherited, also for every keeper.
  std::optional<std::vector<int>> inherited = std::nullopt;
  /// Number of keepers in a row that are replaced although they ended within ten looks of their
  /// start.
  int replacements_max = 5;
  /// It looks so often at a keeper that is silent, or that should end.
  Duration look_every{1'000};
  /// How long it waits for the end of a yard that has not said whether it lives, to remove the
  /// sockets of one that was killed.
  Duration yard_dies_within = SocketRemains::kDying;
};

struct Guarded {
  pid_t guard = 0;  ///< Our child, to be waited for. It ends after the keeper.
  sys::Descriptor words;
};

/// What a keeper does, called in its process: with its end of the socket, with the guard's number,
/// and with the board that the guard reads when the keeper has died.
using KeeperBody = std::function<void(sys::Descriptor socket, pid_t guard, ExitBoard& board)>;

/// Forks the guard, which forks a keeper, and another one when that dies: a keeper ends in order
/// when `keeper` returns. The first word of the guard says that it is there. Returns in this
/// process alone.
Result<Guarded> fork_guarded(const GuardOptions& options, const KeeperBody& keeper);

}  // namespace trainyard::process

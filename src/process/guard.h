// The guard: the process behind the keeper. It ends what a keeper that died has left, and forks
// another one in its place, so that the run goes on.
//
//   yard ──▶ guard ──▶ keeper ──▶ tasks
//     ▲        │
//     └────────┘ words (process/guard_words.h): the yard's end of a new keeper's socket
//
// Guard and keeper are subreapers. The kernel hands the processes of a dead keeper to the guard,
// even if they have changed their session, group or environment; the guard kills them until nothing
// is left. It is as it was forked, with all that the program had then, and so is each keeper.
//
// The guard continues a keeper that is stopped and does not answer the yard, and kills it when its
// patience is over (process/keeper_patience.h). It also kills a keeper that does not end though the
// yard is gone. When the guard dies, the keeper ends everything. When both are killed, a yard that is
// a subreaper as well finds the exits that they have not reported. The guard has a session of its
// own, and a name and a command line without the program's, so that killing the program by name
// spares it.
//
// Not a second keeper: it starts no task, and gives no process time to save anything. It cannot end
// processes that wait in the kernel for a dead disk, and those that have become another user.
#pragma once

#include <functional>
#include <memory>
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

/// The name in `ps`.
inline constexpr std::string_view kGuardName = "yard-guard";

struct GuardOptions {
  Duration patience{0};  ///< Time for a keeper to end everything when the yard is gone.
  /// It keeps this program's standard input and output for the keepers, and not standard error
  /// alone.
  bool keeps_streams = false;
  /// A descriptor that it holds as long as it lives, and every keeper with it; -1: none.
  int held = -1;
  /// As Kept::inherited, also for every keeper.
  std::optional<std::vector<int>> inherited = std::nullopt;
  /// As KeeperOptions::adopts_orphans.
  bool adopts = false;
  /// Number of keepers in a row that are replaced although they ended within ten looks of their
  /// start.
  int replacements_max = 5;
  /// The time between two looks at a keeper that is silent, or that should end.
  Duration look_every{1'000};
  /// The maximum wait for the end of a yard that has not said whether it lives, before the sockets
  /// of a killed one are removed.
  Duration yard_dies_within = SocketRemains::kDying;
};

struct Guarded {
  pid_t guard = 0;  ///< Our child, to be waited for. It ends after the keeper.
  sys::Descriptor words;
  std::unique_ptr<ExitBoard> board = nullptr;  ///< For a yard that adopts.
};

/// The work of a keeper, called in its process: with its end of the socket, with the guard's
/// number, and with the board that the guard reads when the keeper has died.
using KeeperBody = std::function<void(sys::Descriptor socket, pid_t guard, ExitBoard& board)>;

/// Forks the guard, which forks a keeper, and another one when that dies: a keeper ends in order
/// when `keeper` returns. The first word of the guard says that it is there. Returns in this
/// process alone.
Result<Guarded> fork_guarded(const GuardOptions& options, const KeeperBody& keeper);

}  // namespace trainyard::process

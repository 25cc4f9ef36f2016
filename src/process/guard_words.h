// The words between the yard and its guard, each in a packet of its own. Private to the two, which
// are one program: it has no version.
//
// A few system calls and no state. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "process/exit_board.h"
#include "sys/descriptor.h"

namespace trainyard::process {

/// From the yard.
struct ToGuard {
  enum class Kind : std::uint8_t {
    Silent = 1,       ///< The keeper does not answer.
    Answers = 2,      ///< It does again.
    NoMore = 3,       ///< It is not replaced when it ends.
    RemoveAtEnd = 4,  ///< A socket directory that is to go when the yard is gone.
    Enter = 5,        ///< The directory of the run (process/watchers.h).
  };
  Kind kind = Kind::Silent;
  std::string path;  ///< For the last two kinds.

  friend bool operator==(const ToGuard&, const ToGuard&) = default;
};

/// From the guard.
struct FromGuard {
  /// There is a keeper, and `socket` is the yard's end. Nothing: there is none, and none will come.
  std::optional<pid_t> keeper;
  sys::Descriptor socket;
  std::optional<int> died;  ///< The end of the keeper before, as waitpid(2) has it.
  /// As KeeperReplaced has it: at most ExitBoard::kPlaces.
  std::vector<UnreportedExit> exits = {};
  bool was_silent = false;  ///< The guard has ended that one, as it did not answer for too long.
  int in_a_row = 0;  ///< Number that ended at once in a row, that one included; 0: not the reason.
  int error = 0;     ///< The errno of a fork that failed; 0: not the reason.
};

/// A word is lost when there is no room for it or the other end is closed; later reads report that.
void send_word(const sys::Descriptor& socket, const ToGuard& word);
void send_word(const sys::Descriptor& socket, const FromGuard& word);

/// A word that has been received, if any.
template <class Word>
struct Heard {
  std::optional<Word> word;
  bool closed = false;  ///< Nothing comes any more.
};
/// Does not wait. An invalid word closes it.
Heard<ToGuard> hear_yard(const sys::Descriptor& socket);
/// `waits`: until something comes.
Heard<FromGuard> hear_guard(const sys::Descriptor& socket, bool waits = false);

}  // namespace trainyard::process

// The attempts whose end a keeper has not reported yet, in memory that the keeper shares with its
// guard and its yard: when a keeper dies, the guard reports how the attempts had exited. When the
// guard dies as well, the yard finds that there.
//
//   enter() ──▶ runs ──▶ mark_ended() ──▶ ended ──▶ leave(): its end is safe
//
// The yard makes the board before it forks the guard. The keeper writes to it, and when that is
// dead the guard; when both are dead, the yard. Each may have been killed between any two
// instructions. One thread in each.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include <sys/types.h>

#include "model/event.h"
#include "model/ids.h"

namespace trainyard::process {

/// The exit of a process, as the kernel reports it.
using ProcessExit = std::variant<model::ExitedWith, model::KilledBy>;

/// The exit of an attempt that its keeper has not reported.
struct UnreportedExit {
  model::AttemptKey key;
  ProcessExit exit;
  bool was_signalled = false;  ///< The exit counts as due to TERM or KILL of the keeper.

  friend bool operator==(const UnreportedExit&, const UnreportedExit&) = default;
};

/// An exit on the board of a dead keeper.
struct FoundExit {
  UnreportedExit exit;
  std::string note_order;  ///< As ExitBoard::enter() was given it.
};

/// The end of a child.
struct ChildEnd {
  std::optional<ProcessExit> exit;  ///< Nothing: the child was reaped elsewhere.
};

/// Returns nothing while the child runs. Does not reap it.
std::optional<ChildEnd> end_of_child(pid_t child);

/// Returns the children that have exited with 0. Does not reap them.
std::vector<pid_t> exited_well(std::span<const pid_t> children);

class ExitBoard {
 public:
  /// Number of attempts that have a place on the board at a time. Attempts beyond that have none,
  /// and are LOST when the keeper dies.
  static constexpr std::size_t kPlaces = 4096;
  /// The maximum size of a note order in bytes.
  static constexpr std::size_t kNoteOrderMax = 4000;

  /// Makes a board without places where the machine has no memory for it.
  ExitBoard();
  ExitBoard(ExitBoard&&) = delete;
  ExitBoard& operator=(ExitBoard&&) = delete;
  ~ExitBoard();

  /// Takes the board away from processes that are forked from now on: tasks run in some of them.
  void keep_from_children() const;

  // --- of the keeper ---

  /// Adds an attempt that this process runs alone. `note_order` says where and how its end is noted
  /// (process/end_notes.h); a longer one than kNoteOrderMax is dropped. Empty: it is not noted.
  void enter(model::AttemptKey key, pid_t process, std::string_view note_order = {});
  /// Marks the exit of an attempt as one that counts as due to TERM or KILL of the keeper. Must be
  /// called before mark_ended(). For a process that handles the signal, it is called before the
  /// signal is sent: the keeper may die in between.
  void mark_signalled(model::AttemptKey key);
  /// Must be called before the process is reaped. An attempt that was not entered is ignored. An end
  /// that is not the exit of a process removes the attempt.
  void mark_ended(model::AttemptKey key, const model::End& end);
  /// Removes an attempt, if it was entered.
  void leave(model::AttemptKey key);

  // --- of the guard, and of the yard when that is dead ---

  /// Returns the attempts that have exited: those that are marked as ended, and those of the
  /// processes `unreaped`, which have exited with 0 and are marked now. The others leave the board:
  /// their process numbers may come to mean other processes.
  std::vector<FoundExit> find_ended(std::span<const pid_t> unreaped);
  /// Removes all attempts. No keeper may use the board yet.
  void clear();

 private:
  struct Place {
    std::atomic<pid_t> process;  ///< 0: the place is free, and the rest of it says nothing.
    std::atomic<bool> has_ended;
    std::atomic<bool> was_signalled;
    model::AttemptKey key;
    ProcessExit exit;  ///< Valid if `has_ended`.
    std::size_t note_order_size;
    std::array<char, kNoteOrderMax> note_order;
  };
  static_assert(std::is_trivially_copyable_v<ProcessExit>);
  struct Shared {
    /// Number of places that this keeper has ever taken: the first ones. The others are not touched,
    /// so that they need no memory.
    std::atomic<std::size_t> used;
    std::array<Place, kPlaces> places;
  };
  Place* place_of(model::AttemptKey key);

  Shared* shared_ = nullptr;  ///< Null: there is no memory for it.
  // Used by the keeper alone. Nobody else enters anything, so that each new keeper has these empty.
  std::map<model::AttemptKey, std::size_t> taken_;
  std::vector<std::size_t> left_;  ///< Free places of those that were ever taken.
};

}  // namespace trainyard::process

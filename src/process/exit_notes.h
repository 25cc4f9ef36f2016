// Notes of the exits that a dead keeper has left on its board (process/exit_board.h): its guard
// writes them, as the yard may be dead as well.
//
//   keeper: note_order() ──▶ the board ──▶ guard: note_exits() ──▶ trainyard.ends
//
// The attempts' other processes have been killed by then, and may not all be gone. Any thread.
#pragma once

#include <span>
#include <string>

#include "process/end_notes.h"
#include "process/end_reader.h"
#include "process/exit_board.h"
#include "process/keeper.h"

namespace trainyard::process {

/// Returns all that is needed to note the end of an attempt but its exit. `files` are those that it
/// may leave.
std::string note_order(const EndNotes& of, const NotedAttempt& attempt,
                       const EndReader::Question& files);

/// Adds a note for each exit that has an order, and reads what the attempt has left. Waits for the
/// disk.
void note_exits(std::span<const FoundExit> exits);

}  // namespace trainyard::process

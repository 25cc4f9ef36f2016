// The ends of attempts, as the keeper notes them in a file of the run directory when they happen,
// for the next execution of the run if the yard did not write them down. One record after the
// other, each with a checksum: after a kill in the middle of one, the records before it can be
// read.
//
// Writing and reading of the bytes is pure. Only add_end_note() and run/noted_ends.h open the file;
// any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "process/end_reader.h"
#include "process/exit_board.h"
#include "process/keeper.h"

namespace trainyard::process {

/// The maximum size of the file; ends for which there is no room are not noted.
constexpr std::size_t kEndNotesMax = std::size_t{64} << 20U;

/// Facts about an attempt that are known at its start and needed after its end.
struct NotedAttempt {
  std::uint32_t journal_number = 0;  ///< Of its task.
  bool two_phase = false;
  int ranks = 0;
  bool shares_memory = false;  ///< With what it was forked from: its peak says nothing.

  friend bool operator==(const NotedAttempt&, const NotedAttempt&) = default;
};

struct EndNote {
  EndNotes of;  ///< The execution, and its clock; the path is not noted.
  NotedAttempt attempt;
  ProcessEnded ended;  ///< Its key has the number of the attempt, and no task.
};

/// All of it but what it has left in its files, which is read where the record is made.
std::string end_note_head(const EndNote& note);
/// The same back, without what it has left; nothing if it is of another version of the program.
std::optional<EndNote> note_from_head(std::string_view head);
/// The whole record.
std::string end_note_record(std::string_view head, const LeftBehind& left);

/// The records that are whole and of this version of the program. At most 16 places that look like
/// one and are not are passed over.
std::vector<EndNote> read_end_notes(std::string_view bytes);

/// Adds a record to the file at `path`, which is made where it is missing, if it has room; takes
/// back what it could not write whole. Nothing is written into what is no plain file of ours: that
/// is taken away. A user who has lost access to the own directory gets it back. False: the record is
/// not there.
bool add_end_note(const std::string& path, std::string_view record);

/// Removes what a kill has left of a record at the end of the file: records behind it would not be
/// read. Nothing is done to what is no plain file of ours.
void cut_incomplete_end_note(const std::string& path);

/// Returns all that is needed to note the end of an attempt but its exit. `files` are those that it
/// may leave.
std::string note_order(const EndNotes& of, const NotedAttempt& attempt,
                       const EndReader::Question& files);

/// Notes the exits that a dead keeper has left on its board (process/exit_board.h). Its guard calls
/// this, as the yard may be dead as well; the other processes of the attempts have been killed by
/// then, and may not all be gone.
///
///   keeper: note_order() ──▶ the board ──▶ guard: note_exits() ──▶ trainyard.ends
///
/// Adds a note for each exit that has an order, and reads what the attempt has left. Waits for the
/// disk.
void note_exits(std::span<const FoundExit> exits);

}  // namespace trainyard::process

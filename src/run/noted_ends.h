// Ends of attempts that a keeper could not report, and noted (process/end_notes.h); those of a dead
// execution with the outcomes of their tasks (schedule/unwatched_end.h).
//
// Reads files; with the run directory locked.
#pragma once

#include <string>
#include <vector>

#include "journal/earlier_ends.h"
#include "process/end_notes.h"
#include "process/keeper.h"

namespace trainyard::run {

struct NotedEnds {
  std::vector<journal::EarlierEnd> ends;  ///< For the journal of this run, which may know them.
  std::string trouble;                    ///< For users: why some may be missing; empty: none is.
};

/// The ends of the last execution. It must be dead, and its keeper.
NotedEnds noted_ends(const std::string& run_directory);

/// The notes of this execution, whose keeper has died or lost its guard; empty where they cannot be
/// read.
std::vector<process::EndNote> notes_of(const process::EndNotes& execution);

/// Called once they are in the journal, or mean nothing any more.
void remove_noted_ends(const std::string& run_directory);

/// Up to two lines for the user, as in "2 tasks ended after trainyard had died; their outcomes are
/// recorded" and "2 tasks were running when trainyard died, and were killed: they run again".
std::vector<std::string> lines_about_ends(const journal::EarlierEndCounts& counts);

}  // namespace trainyard::run

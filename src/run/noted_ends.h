// The remains of a run that died: ends of attempts that a keeper could not report, and noted
// (process/end_notes.h), with the outcomes of their tasks (schedule/ending.h), attempts that
// its journal does not know, and processes.
//
// Reads files; with the run directory locked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "journal/earlier_ends.h"
#include "journal/reader.h"
#include "process/end_notes.h"
#include "process/keeper.h"

namespace trainyard::run {

struct NotedEnds {
  std::vector<journal::EarlierEnd> ends;  ///< For the journal of this run, which may know them.
  std::string trouble;                    ///< For users: why some may be missing; empty: none is.
};

/// The ends of the last execution. The execution and its keeper must have died.
NotedEnds noted_ends(const std::string& run_directory);

/// The notes of this execution, whose keeper has died or lost its guard; empty where they cannot be
/// read.
std::vector<process::EndNote> notes_of(const process::EndNotes& execution);

/// Deletes the notes, once their ends are in the journal or no longer matter.
void remove_noted_ends(const std::string& run_directory);

/// Up to two lines for the user, as in "2 tasks ended after trainyard had died; their outcomes are
/// recorded" and "2 tasks were running when trainyard died, and were killed: they run again".
std::vector<std::string> lines_about_ends(const journal::EarlierEndCounts& counts);

/// An error that names the tasks of which an attempt has left a log and that the journal does not
/// know: its newest part is gone, and they would run again over their logs. A log from before this
/// boot of the machine does not count: a loss of power takes the last turns from the journal
/// (docs/journal.md). No error if the journal cannot be read: opening it for writing reports that.
/// Lists each directory of tasks once. No task may run.
Result<void> check_attempts_are_known(const std::string& run_directory);

/// The processes of its tasks that are still running on this host, in order; run/yard_run.h ends
/// them when the run resumes. `last` is the last execution of the run, which is not active. None if
/// that has ended or was on another host. Costs a scan of the machine's processes if it died here.
std::vector<std::int64_t> processes_left(const std::string& run_directory,
                                         const journal::ExecutionRow& last);

}  // namespace trainyard::run

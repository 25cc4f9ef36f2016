// The selected tasks of a run, from its journal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "journal/reader.h"
#include "model/ids.h"
#include "report/task_state.h"
#include "text/task_pattern.h"

namespace trainyard::cli {

/// A run, and which of its tasks are meant.
struct TasksOfRun {
  std::string run;                          ///< Its directory; absolute.
  std::vector<text::TaskPattern> patterns;  ///< None: all.
  std::vector<report::TaskState> states;    ///< None: any.
  std::size_t candidates = 1;               ///< See FoundRun.
  std::string named = {};                   ///< The word that names the run; empty: none does.
  std::string newer_in_queue = {};          ///< See FoundRun.
  std::string unreadable = {};              ///< The same.
  bool is_elsewhere = false;                ///< See FoundRun.
  bool needs_active = false;                ///< The command changes active runs alone.

  [[nodiscard]] bool is_all() const { return patterns.empty() && states.empty(); }
};

/// Whether a name without a group may stand for the tasks of several.
enum class SameName : std::uint8_t { Refuse, MeansAll };

/// The selected tasks, in the order of the run; tasks that ran when it died are lost. An error for
/// a pattern that no task has, with similar names, and for a name of several tasks. May be empty if
/// states are selected.
Result<std::vector<journal::TaskRow>> selected_tasks(journal::JournalReader& reader,
                                                     const TasksOfRun& selection,
                                                     SameName same_name);

/// Returns the tasks that the patterns select, in any state; none if a pattern selects none, or the
/// journal cannot be read. Does not search other runs for missing names, as the error of
/// selected_tasks() does.
std::vector<model::TaskIndex> tasks_of_patterns(journal::JournalReader& reader,
                                                const TasksOfRun& selection);

/// Returns the selected tasks that a word names by their id, "lr=0.1" or "train/lr=0.1". Tasks named
/// by a pattern, a group, matrix values or a state are left out.
std::set<model::TaskIndex> named_tasks(const TasksOfRun& selection,
                                       const std::vector<journal::TaskRow>& selected);

/// "; a state begins with a colon: type :failed" for the word "failed", and "; for all tasks, type
/// '*'" for "all"; empty for other words.
std::string selection_instead(std::string_view word);

/// Whether the yard of a run is gone without recording its end: then the tasks that ran are lost.
bool has_died(journal::JournalReader& reader, const std::string& run);

/// "train/lr=0.1", as people read and type it.
inline std::string shown_name(const journal::TaskRow& row) { return row.group_name + "/" + row.id; }

/// "train/lr=0.1 is selected", one line for each task; after 20 lines "and 3 more".
std::string names_and_what(const std::vector<journal::TaskRow>& tasks, std::string_view what);

/// "train/lr=0.1 is RUNNING, train/lr=0.2 is FINISHED"; after three tasks ", and 2 more".
std::string names_and_words(const std::vector<journal::TaskRow>& tasks);

/// "'sweep' is run 13 ('runs/sweep-2'), the latest of 2 runs", or "'sweep' is run 13
/// ('runs/sweep'), which is active; run 14 ('runs/sweep-2') is in your queue". Empty unless several
/// runs have the typed name and at most one of them is active, or no run of this directory has it,
/// which the note says as well.
std::string which_run_note(const TasksOfRun& selection);

/// Finds the newest run of a word, as find_run() does, and prints a note where no run of this
/// directory has the name.
Result<std::string> newest_run_of(const std::string& named);

/// "no task of 'runs/sweep' is :oom", if the states leave none; the states may be the defaults of
/// the command. A status counts tasks on hold as waiting, so "; 4 are :held" follows for :waiting.
std::string none_in_state(const TasksOfRun& selection);

/// "For all of them, type: trainyard kill runs/sweep '*'", for a command that needs its tasks named.
std::string how_to_name_all(std::string_view command, const TasksOfRun& selection);

}  // namespace trainyard::cli

// The meaning of the words after a command: the run, and its tasks.
//
//   46   digits   last   runs/digits   sweep.yaml     a run (app/run_name.h)
//   46/lr=0.1   runs/digits/train/*                   tasks of that run (text/task_pattern.h)
//   lr=0.1   train/lr=0.1   'lr=*'                    tasks of the run named elsewhere
//   :failed   :oom                                    those of them that are in that state
//
// The words may be in any order. The tasks are those of any of the patterns, and of these the ones
// in any of the states. Pure: RunFacts knows the runs and their tasks.
//
//   Result<TasksOfRun> selection = read_selection({.words = {"46", "lr=0.1", ":oom"}}, facts);
//   selected_tasks(**facts.tasks_of(selection->run), *selection, SameName::Refuse, facts);
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "app/run_facts.h"
#include "app/run_name.h"
#include "base/result.h"
#include "journal/reader.h"
#include "model/ids.h"
#include "model/status.h"
#include "report/task_state.h"
#include "text/task_pattern.h"

namespace trainyard::app {

struct SelectionWords {
  std::vector<std::string> words;
  std::string run_directory = {};  ///< --run-dir, or empty: then the words may name the run.
  WhenSeveral when_several = WhenSeveral::TakeLatest;
  std::string command = {};  ///< "kill --dry-run", for the cures; empty: none is shown.
};

/// A run, and which of its tasks are meant.
struct TasksOfRun : FoundRun {
  std::vector<text::TaskPattern> patterns = {};  ///< None: all.
  std::vector<report::TaskState> states = {};    ///< None: any.
  bool needs_active = false;                     ///< The command changes only active runs.

  [[nodiscard]] bool is_all() const { return patterns.empty() && states.empty(); }
};

/// Returns an entry for each named run, or for the run that is taken without a name. Next to a
/// named run, a word for its tasks is not a further run. An error for a word without a meaning, and
/// for a word that means a run and a task.
Result<std::vector<TasksOfRun>> read_selections(const SelectionWords& words, const RunFacts& facts);

/// The entry of the one run that is named, or taken without a name. An error for several runs.
Result<TasksOfRun> read_selection(const SelectionWords& words, const RunFacts& facts);

/// For a command that shows a run, also before it starts: a single word that means a run and a task
/// is the run. An error also for a single word that means no task of a run that has started.
Result<TasksOfRun> read_shown_selection(const SelectionWords& words, const RunFacts& facts);

/// Whether a name without a group may stand for the tasks of several groups.
enum class SameName : std::uint8_t { Refuse, MeansAll };

/// The selected tasks, in the order of the run; in a run that is not active, tasks that seem to run
/// are lost. An error for a pattern without a task, with similar names, and for a name of several
/// tasks. May be empty if states are selected. `tasks` are those of the selected run.
Result<std::vector<journal::TaskRow>> selected_tasks(RunTasks& tasks, const TasksOfRun& selection,
                                                     SameName same_name, const RunFacts& facts);

/// The selected tasks that a word names by their id, "lr=0.1" or "train/lr=0.1". Tasks named by a
/// pattern, a group, matrix values or a state are left out.
std::set<model::TaskIndex> named_tasks(const TasksOfRun& selection,
                                       const std::vector<journal::TaskRow>& selected);

/// "no task of 'runs/sweep' is :oom", if the states leave none; the states may be the defaults of
/// the command. A status counts tasks on hold as waiting, so "; 4 are :held" follows for :waiting.
std::string none_in_state(const TasksOfRun& selection, const RunFacts& facts);

/// Adds to an error the cure for a time as the last word, which is read as a run or a task: "run 5
/// not found; --watch takes no interval: type 'trainyard status --watch'". Other words keep the
/// error.
Error with_cure_of_interval(const SelectionWords& words, const Error& error);

/// Whether a command that needs its tasks named refuses the selection: it is all `tasks` of a run,
/// unless the run was named and is a single task.
inline bool names_no_task(const TasksOfRun& selection, std::size_t tasks) {
  return selection.is_all() && (tasks != 1 || selection.named.empty());
}

/// "For all of them, type: trainyard kill runs/sweep '*'", for a command that needs its tasks named.
std::string how_to_name_all(std::string_view command, const TasksOfRun& selection);

/// "train/lr=0.1", as people read and type it.
inline std::string shown_name(const journal::TaskRow& row) { return row.group_name + "/" + row.id; }

inline bool is_finished(const journal::TaskRow& row) {
  return row.standing.verdict == model::Verdict::Finished;
}

/// "train/lr=0.1 is selected", one line for each task; after 20 lines "and 3 more".
std::string names_and_what(const std::vector<journal::TaskRow>& tasks, std::string_view what);

/// "train/lr=0.1 is RUNNING, train/lr=0.2 is FINISHED"; after three tasks ", and 2 more".
std::string names_and_words(const std::vector<journal::TaskRow>& tasks);

}  // namespace trainyard::app

// The meaning of the words after a command: the run, and its tasks.
//
//   46   digits   last   runs/digits   sweep.yaml                a run
//   46/lr=0.1   runs/digits/train/*                       tasks of that run (text/task_pattern.h)
//   lr=0.1   train/lr=0.1   'lr=*'                        tasks of the run named elsewhere
//   :failed   :oom                                        those of them that are in that state
//
// The words may be in any order. The tasks are those of any of the patterns, and of these the ones
// in any of the states.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/find_run.h"
#include "cli/selected_tasks.h"

namespace trainyard::cli {

struct SelectionWords {
  std::vector<std::string> words;
  std::string run_directory;  ///< --run-dir, or empty: then the words may name the run.
  WhenSeveral when_several = WhenSeveral::TakeLatest;
};

/// One entry for each named run, or for the run that is taken without a name (find_run.h). Next to
/// a named run, a word for its tasks is no further run. An error for a word without a meaning, and
/// for a word that means a run and a task.
Result<std::vector<TasksOfRun>> read_selections(const SelectionWords& words);

/// The entry of the one run that is named, or that is meant where none is. An error for several.
Result<TasksOfRun> read_selection(const SelectionWords& words);

}  // namespace trainyard::cli

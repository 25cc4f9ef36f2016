// The user's runs on this machine, as the disk and the queue have them, and the words that mean
// them and their tasks (app/run_name.h, app/task_selection.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/run_facts.h"
#include "app/run_name.h"
#include "app/task_selection.h"
#include "base/result.h"
#include "job/job.h"
#include "journal/reader.h"

namespace trainyard::cli {

using app::names_and_what;
using app::names_and_words;
using app::names_no_task;
using app::SameName;
using app::SelectionWords;
using app::shown_name;
using app::TasksOfRun;
using app::WhenSeveral;

/// Reads runs, journals and the queue at each question. Runs of a directory are in its runs/, in
/// the runs/ of the configured workdir, and those that were started or submitted from it.
const app::RunFacts& run_facts();

/// The directory of the run that app::choose_run() takes.
Result<std::string> find_run(const std::string& word,
                             WhenSeveral when_several = WhenSeveral::TakeLatest);

/// The tasks of a run, whose journal outlives them.
std::unique_ptr<app::RunTasks> tasks_in(journal::JournalReader& reader, const std::string& run);

/// The app functions of these names, for the runs of this machine and for words as CLI11 has them.
Result<std::vector<TasksOfRun>> read_selections(SelectionWords words);
Result<TasksOfRun> read_selection(SelectionWords words);
Result<std::vector<journal::TaskRow>> selected_tasks(journal::JournalReader& reader,
                                                     const TasksOfRun& selection,
                                                     SameName same_name);
std::string none_in_state(const TasksOfRun& selection);

/// Whether a directory has a run: a run that is just beginning has no journal yet, and a run may
/// have lost it. Costs as much as run::active_process() where there are no files of a run.
bool holds_run(const std::string& directory);

/// Whether a run has this name: its directory has it, or is the second or a later one of the job of
/// this name: "eval-3" of "eval".
bool has_name(const std::string& run_directory, std::string_view name);

/// Whether the run in a directory belongs to the job: its last execution was of this job file, or
/// of one that is gone, with the same name. A run whose journal cannot be read may belong to it.
bool is_run_of(const std::string& run_directory, const job::JobRuns& job);

/// The runs of a job: active runs first, then the latest.
std::vector<app::KnownRun> runs_of(const job::JobRuns& job);

/// The present or former directory of the run of this number; nothing if it was never assigned, or
/// is forgotten.
std::optional<std::string> directory_of_run(std::uint32_t number);

/// The number of a run; nothing if it has none, such as a run that began on another host.
std::optional<std::uint32_t> number_of_run(const std::string& run_directory);

/// A run of which only the number and the names are read, as seen from here.
app::KnownRun named_run(const std::string& run_directory);

/// "run 46 ('runs/digits')", as seen from here; without a number the directory alone.
std::string name_of_run(const std::string& run_directory);

/// On a terminal, prints on standard error which run a number names, the outcome of the command
/// ("submitted"), and the commands for the run. A script reads the number alone, from standard
/// output.
void explain_number(std::uint32_t number, const std::string& run_directory,
                    std::string_view outcome);

/// The journal of a run. Waits at most ten seconds for that of a run that is just beginning, and
/// prints a note of it to standard error after one second.
Result<journal::JournalReader> open_run(const std::string& run_directory);

/// The socket of the active yard in a run directory.
Result<std::string> socket_of_run(journal::JournalReader& reader, const std::string& run);

/// Whether no yard of the run is active: tasks that seem to run are lost, also where the yard has
/// recorded its end, as it may have been unable to record theirs.
bool is_over(journal::JournalReader& reader, const std::string& run);

}  // namespace trainyard::cli

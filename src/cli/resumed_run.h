// The options that a resumed run takes from its last execution, a preview of what resuming it would
// do, and the command that runs finished tasks again, in another run.
#pragma once

#include <cstddef>
#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "app/retry_plan.h"
#include "base/result.h"
#include "cli/commands.h"
#include "cli/job_tasks.h"
#include "job/job.h"
#include "journal/journal.h"
#include "journal/options.h"
#include "journal/reader.h"
#include "text/mistake.h"
#include "wire/control.h"

namespace trainyard::cli {

/// The options as typed. For a resumed run, options that were not typed are those of its last
/// execution.
Result<RunOptions> fill_in(const RunOptions& typed);

/// The options for reading the job file. A run that takes the next free directory gets the one that
/// is free now.
Result<job::LoadOptions> load_options_of(const RunOptions& options);

journal::JournalOptions journal_options(const RunOptions& options);

/// The only tasks to run, if there are such: retried tasks, and finished tasks that run once more.
std::vector<wire::Retry> asked_for(const RunOptions& options);

/// Adds earlier submissions to a resumed run, each by its own text. Returns notes for people on
/// directories that were copied or moved with the run.
std::expected<std::vector<std::string>, text::Mistakes> add_submitted(JobTasks& tasks,
                                                                      const std::string& directory);

/// The effect of resuming the run; nothing for a run that was killed before it had begun. Adds the
/// tasks that were submitted to the run. Locks the run directory for as long as this takes; an
/// error if another process has locked it.
Result<std::optional<journal::Journal::Preview>> look_ahead(const RunOptions& options,
                                                            JobTasks& tasks);

/// The command that runs all tasks of a run, or `only` those of these patterns, in another run.
/// Nothing for runs that no command line starts again, such as that of a program.
std::optional<app::NewRunCommand> new_run_of(journal::JournalReader& reader, const std::string& run,
                                             const std::vector<std::string>& only = {});

/// "the code has changed since 3 of them ran (files that git tracks); 'trainyard run sweep.yaml
/// --new' runs all tasks ...", for a run of which all `tasks` have finished. Begins with the command
/// if the code is the same or is not known. Empty where new_run_of() is nothing. Asks git, for some
/// seconds at most.
std::string run_again_note(const std::string& run, std::size_t tasks);

}  // namespace trainyard::cli

// The options that a resumed run takes from its last execution, and a preview of what resuming it
// would do.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/commands.h"
#include "cli/job_tasks.h"
#include "job/job.h"
#include "journal/journal.h"
#include "journal/options.h"
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

}  // namespace trainyard::cli

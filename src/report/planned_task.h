// The facts about a task or a group in a dry run, in the words that its text and its JSON share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "job/job.h"
#include "model/ids.h"
#include "model/launch.h"
#include "model/plan.h"
#include "model/resources.h"
#include "report/dry_run.h"

namespace trainyard::report {

/// Lines that a person can paste.
struct CommandLines {
  std::string command;  ///< With all values in their places.
  std::string runs_as;  ///< The command that runs, if it is different.
};

CommandLines command_lines(const model::Launch& launch,
                           const std::optional<job::WrittenCommand>& written);

/// A preloaded command is started without a shell.
std::optional<job::WrittenCommand> written_command(const job::Job& job, model::TaskIndex task,
                                                   const model::Launch& launch);

/// The variables that its launch sets, and those that would cap its GPU memory.
std::vector<std::string> environment_of(const job::Job& job, model::TaskIndex task,
                                        const model::Launch& launch);

/// The task of a group that is tried first, as far as that is known before the run begins; nothing
/// if all tasks start at once.
std::optional<model::TaskIndex> tried_first(const model::Plan& plan, std::size_t group);

/// The next attempts of the tasks that have not finished before.
struct ToRun {
  std::vector<model::AttemptKey> shown;  ///< At most the number requested.
  std::size_t count = 0;
};

ToRun to_run(const model::Plan& plan, std::int64_t tasks_max);

/// The notes of the job, of the machines that were not checked, and of a run that is resumed.
std::vector<std::string> notes_of(const job::Job& job, const ResumedPlan* resumed);

}  // namespace trainyard::report

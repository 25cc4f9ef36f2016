// What a dry run says of a task or a group before anything runs, in the words that its text and its
// JSON share.
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

namespace trainyard::report {

/// Lines that a person can paste.
struct CommandLines {
  std::string command;  ///< With all values in their places.
  std::string runs_as;  ///< What runs, where that is something else.
};

CommandLines command_lines(const model::Launch& launch,
                           const std::optional<job::WrittenCommand>& written);

/// A preloaded command is started without a shell.
std::optional<job::WrittenCommand> written_command(const job::Job& job, model::TaskIndex task,
                                                   const model::Launch& launch);

/// What its launch sets, and what it would be told of its GPU besides.
std::vector<std::string> environment_of(const job::Job& job, model::TaskIndex task,
                                        const model::Launch& launch);

/// The task of a group that is tried first, as far as that is known before the run begins; nothing
/// if all tasks start at once.
std::optional<model::TaskIndex> tried_first(const model::Plan& plan, std::size_t group);

/// The next attempts of the tasks that have not finished before.
struct ToRun {
  std::vector<model::AttemptKey> shown;  ///< At most as many as were asked for.
  std::size_t count = 0;
};

ToRun to_run(const model::Plan& plan, std::int64_t tasks_max);

}  // namespace trainyard::report

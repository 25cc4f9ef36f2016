// The command that runs finished tasks again, in another run, and the note of a run with nothing to
// run that names it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "app/retry_plan.h"
#include "journal/reader.h"

namespace trainyard::cli {

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

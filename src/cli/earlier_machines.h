// The machines of an execution that has died, before a run goes on without them.
#pragma once

#include <string>

#include "base/result.h"
#include "base/time.h"
#include "cli/run_machines.h"
#include "journal/reader.h"

namespace trainyard::cli {

/// How long tasks on other machines run on when nothing is heard of their yard, and take to end: as
/// it was said for that execution. What nobody can read any more is the usual one.
Duration time_after(const journal::ExecutionRow& execution);

/// How long tasks of an execution may still run on their agents if it died at `last`; zero or less
/// if it has ended or has no agents.
Duration time_left_for_tasks(const std::string& run_directory,
                             const journal::ExecutionRow& execution, Instant last);

/// What an execution that has died left on machines that are not among `here` may run on until its
/// lease is over: waits for that, and says so. On the others their agents see to it. An error where
/// the journal cannot be read.
Result<void> wait_for_earlier_machines(const std::string& run_directory, const RunMachines& here);

}  // namespace trainyard::cli

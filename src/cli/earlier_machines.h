// The machines of an execution that has died, before a run resumes without them.
#pragma once

#include <string>

#include "base/result.h"
#include "base/time.h"
#include "cli/run_machines.h"
#include "journal/reader.h"

namespace trainyard::cli {

/// The time that tasks of an execution may still run on their agents if it died at `last`; zero or
/// less if it has ended or has no agents.
Duration time_left_for_tasks(const std::string& run_directory,
                             const journal::ExecutionRow& execution, Instant last);

/// Tasks of a dead execution on machines that are not among `here` may run on until their lease is
/// over: waits for that, and says so. On the others their agents stop them. The run must have begun.
/// An error if its journal cannot be read.
Result<void> wait_for_earlier_machines(const std::string& run_directory, const RunMachines& here);

}  // namespace trainyard::cli

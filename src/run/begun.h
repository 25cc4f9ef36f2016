// Whether a run has begun in a directory, by its journal and by its other files. A journal that is
// empty or missing says that none has; files that tasks left next to it say otherwise, and no other
// run may begin over them.
#pragma once

#include <string>

#include "base/result.h"

namespace trainyard::run {

/// False where no run has begun, so that one may begin. An error, with what to do next, where
/// results of a run lie in the directory and its journal holds none; and where what lies in the
/// journal's place is none of ours, from another version, or damaged. Outputs of tasks are results
/// of a run only where its lock or its kept job file is. Looks at no more than some thousand files.
Result<bool> has_begun(const std::string& run_directory);

/// Why no run can be made in this directory or in one numbered after it, as in "is not a
/// directory": the path is taken by files that belong to no run. Empty: it is free, or has a run.
std::string why_not_for_runs(const std::string& directory);

}  // namespace trainyard::run

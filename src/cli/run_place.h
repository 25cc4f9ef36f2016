// The directory of a run: is it free, who is in it, what did the last one leave.
#pragma once

#include <string>

#include "base/result.h"
#include "config/job.h"
#include "io/files.h"

namespace trainyard::cli {

struct NewPlace {
  std::string run_directory;
  bool typed = false;        ///< With --run-dir.
  std::string command_line;  ///< That asks for it.
  JobRuns job;
};

/// Makes the directory of a new run and locks it. An error when a run is or has been in it, with
/// the ways out as lines to type, which begin with the command line.
Result<io::RunLock> take_new_place(const NewPlace& place);

/// Locks the directory of an old run, and leaves all that is there as it is.
Result<io::RunLock> look_into_old_place(const std::string& run_directory);

/// Locks the directory of an old run and ends what it left running.
Result<io::RunLock> take_old_place(const std::string& run_directory);

}  // namespace trainyard::cli

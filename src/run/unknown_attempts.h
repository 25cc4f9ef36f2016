// Attempts that have left a log and that the journal of their run does not know: the newest part of
// the journal is gone, and tasks that had run would run again over their logs.
//
// Reads files; with the run directory locked, while no task runs.
#pragma once

#include <string>

#include "base/result.h"

namespace trainyard::run {

/// An error that names such tasks. A log from before this boot of the machine does not count: a
/// loss of power takes the last turns from the journal (docs/journal.md). No error if the journal
/// cannot be read: opening it for writing reports that. Lists each directory of tasks once.
Result<void> check_attempts_are_known(const std::string& run_directory);

}  // namespace trainyard::run

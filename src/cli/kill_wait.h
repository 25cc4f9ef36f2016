// The wait of `trainyard kill` for the end of tasks, and its output meanwhile. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "base/time.h"
#include "journal/reader.h"

namespace trainyard::cli {

/// The time in which all of these tasks must have ended. For each group of tasks that one request
/// kills it is the longest time until SIGTERM, plus 30 s.
Duration kill_wait_max(const std::vector<journal::TaskRow>& tasks);

/// "train/s=1 has up to 40 s to save its state before SIGTERM; Ctrl-C stops only the waiting", or
/// "3 tasks have up to ..." with the longest of their times. Empty if no running task has a signal
/// before SIGTERM.
std::string kill_wait_note(const std::vector<journal::TaskRow>& tasks);

}  // namespace trainyard::cli
